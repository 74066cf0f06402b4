/** A small virtual DOM: `h` describes elements, `draw` changes the document accordingly. */

type Value = string | number | boolean | null | undefined | Handler | Style;
type Handler = (event: Event) => void;
type Style = Readonly<Record<string, string>>;
export type Attributes = Readonly<Record<string, Value>>;
export type Child = Element | string;
export type Children = Child | number | null | false | undefined | readonly Children[];

export interface Element {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly Child[];
}

const SPACES: Record<string, string> = {
  svg: "http://www.w3.org/2000/svg",
  math: "http://www.w3.org/1998/Math/MathML",
};

function flat(children: Children, into: Child[]): Child[] {
  if (Array.isArray(children)) for (const child of children) flat(child as Children, into);
  else if (typeof children === "string" || typeof children === "number") into.push(String(children));
  else if (children) into.push(children as Element);
  return into;
}

export function h(tag: string, attributes: Attributes = {}, ...children: Children[]): Element {
  return { tag, attributes, children: flat(children, []) };
}

type Known = globalThis.Element;

function create(described: Child, space: string | null): ChildNode {
  if (typeof described === "string") return document.createTextNode(described);
  const inside = SPACES[described.tag] ?? space;
  const created: Known = inside
    ? document.createElementNS(inside, described.tag)
    : document.createElement(described.tag);
  update(created, { tag: described.tag, attributes: {}, children: [] }, described, inside);
  return created;
}

function update(node: Known, before: Element, after: Element, space: string | null): void {
  for (const name of Object.keys(before.attributes)) if (!(name in after.attributes)) set(node, name, null);
  for (const [name, value] of Object.entries(after.attributes)) {
    if (value !== before.attributes[name] && name !== "value") set(node, name, value);
  }
  after.children.forEach((child, i) => {
    const old = node.childNodes[i];
    if (old === undefined) node.append(create(child, space));
    else patch(old, before.children[i], child, space);
  });
  while (node.childNodes.length > after.children.length) node.lastChild!.remove();
  if ("value" in after.attributes) set(node, "value", after.attributes.value); // options come first
}

function patch(node: ChildNode, before: Child | undefined, after: Child, space: string | null): void {
  if (typeof before === "string" && typeof after === "string") {
    if (before !== after) node.nodeValue = after;
  } else if (typeof before === "object" && typeof after === "object" && before.tag === after.tag) {
    if (before !== after) update(node as unknown as Known, before, after, SPACES[after.tag] ?? space);
  } else {
    node.replaceWith(create(after, space));
  }
}

/** Styles are set through the object model: the content security policy forbids them as text. */
function style(node: Known, described: Style): void {
  const { style } = node as unknown as HTMLElement;
  for (const name of Array.from(style)) if (!(name in described)) style.removeProperty(name);
  for (const [name, value] of Object.entries(described)) style.setProperty(name, value);
}

function set(node: Known, name: string, value: Value): void {
  if (name.startsWith("on")) (node as unknown as Record<string, unknown>)[name] = value ?? null;
  else if (name === "style") style(node, (value ?? {}) as Style);
  else if (name === "value" && "value" in node) (node as HTMLInputElement).value = String(value ?? "");
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

const drawn = new WeakMap<Known, Element>();

/** Make the children of `root` those described, keeping every element that can stay. */
export function draw(root: HTMLElement, ...described: Children[]): void {
  const before = drawn.get(root) ?? h("");
  const after = h("", {}, described);
  update(root, before, after, null);
  drawn.set(root, after);
}
