/** A small virtual DOM: `h` makes virtual nodes, `draw` updates the document to match them. */

type Value = string | number | boolean | null | undefined | Handler | Style;
type Handler = (event: Event) => void;
type Style = Readonly<Record<string, string>>;
export type Attributes = Readonly<Record<string, Value>>;
export type Child = VNode | string;
export type Children = Child | number | null | false | undefined | readonly Children[];

export interface VNode {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly Child[];
}

const NAMESPACES: Record<string, string> = {
  svg: "http://www.w3.org/2000/svg",
  math: "http://www.w3.org/1998/Math/MathML",
};

function flatten(children: Children, into: Child[]): Child[] {
  if (Array.isArray(children)) for (const child of children) flatten(child as Children, into);
  else if (typeof children === "string" || typeof children === "number") into.push(String(children));
  else if (children) into.push(children as VNode);
  return into;
}

export function h(tag: string, attributes: Attributes = {}, ...children: Children[]): VNode {
  return { tag, attributes, children: flatten(children, []) };
}

type DomElement = globalThis.Element;

function create(vnode: Child, namespace: string | null): ChildNode {
  if (typeof vnode === "string") return document.createTextNode(vnode);
  const childNamespace = NAMESPACES[vnode.tag] ?? namespace;
  const node: DomElement = childNamespace
    ? document.createElementNS(childNamespace, vnode.tag)
    : document.createElement(vnode.tag);
  update(node, { tag: vnode.tag, attributes: {}, children: [] }, vnode, childNamespace);
  return node;
}

function update(node: DomElement, before: VNode, after: VNode, namespace: string | null): void {
  for (const name of Object.keys(before.attributes)) if (!(name in after.attributes)) set(node, name, null);
  for (const [name, value] of Object.entries(after.attributes)) {
    if (value !== before.attributes[name] && name !== "value") set(node, name, value);
  }
  after.children.forEach((child, i) => {
    const old = node.childNodes[i];
    if (old === undefined) node.append(create(child, namespace));
    else patch(old, before.children[i], child, namespace);
  });
  while (node.childNodes.length > after.children.length) node.lastChild!.remove();
  if ("value" in after.attributes) set(node, "value", after.attributes.value); // options come first
}

function patch(node: ChildNode, before: Child | undefined, after: Child, namespace: string | null): void {
  if (typeof before === "string" && typeof after === "string") {
    if (before !== after) node.nodeValue = after;
  } else if (typeof before === "object" && typeof after === "object" && before.tag === after.tag) {
    if (before !== after)
      update(node as unknown as DomElement, before, after, NAMESPACES[after.tag] ?? namespace);
  } else {
    node.replaceWith(create(after, namespace));
  }
}

/** Styles are set through the object model: the content security policy forbids them as text. */
function setStyle(node: DomElement, styles: Style): void {
  const { style } = node as unknown as HTMLElement;
  for (const name of Array.from(style)) if (!(name in styles)) style.removeProperty(name);
  for (const [name, value] of Object.entries(styles)) style.setProperty(name, value);
}

function set(node: DomElement, name: string, value: Value): void {
  if (name.startsWith("on")) (node as unknown as Record<string, unknown>)[name] = value ?? null;
  else if (name === "style") setStyle(node, (value ?? {}) as Style);
  else if (name === "value" && "value" in node) (node as HTMLInputElement).value = String(value ?? "");
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

const lastDrawn = new WeakMap<DomElement, VNode>();

/** Make `children` the content of `root`; elements that are already there are updated in place. */
export function draw(root: HTMLElement, ...children: Children[]): void {
  const before = lastDrawn.get(root) ?? h("");
  const after = h("", {}, children);
  update(root, before, after, null);
  lastDrawn.set(root, after);
}
