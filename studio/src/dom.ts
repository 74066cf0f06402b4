/** A page is a function of its state: `h` describes elements, `patch` changes the document to be so. */

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

function create(wanted: Child, space: string | null): ChildNode {
  if (typeof wanted === "string") return document.createTextNode(wanted);
  const inside = SPACES[wanted.tag] ?? space;
  const made: Known = inside
    ? document.createElementNS(inside, wanted.tag)
    : document.createElement(wanted.tag);
  update(made, { tag: wanted.tag, attributes: {}, children: [] }, wanted, inside);
  return made;
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

/** The styles go through the object model: a strict content policy forbids them as text. */
function style(node: Known, wanted: Style): void {
  const { style } = node as unknown as HTMLElement;
  for (const name of Array.from(style)) if (!(name in wanted)) style.removeProperty(name);
  for (const [name, value] of Object.entries(wanted)) style.setProperty(name, value);
}

function set(node: Known, name: string, value: Value): void {
  if (name.startsWith("on")) (node as unknown as Record<string, unknown>)[name] = value ?? null;
  else if (name === "style") style(node, (value ?? {}) as Style);
  else if (name === "value" && "value" in node) (node as HTMLInputElement).value = String(value ?? "");
  else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

const drawn = new WeakMap<Known, Element>();

/** Make the children of `root` what `wanted` says, keeping every element that can stay. */
export function draw(root: HTMLElement, ...wanted: Children[]): void {
  const before = drawn.get(root) ?? h("");
  const after = h("", {}, wanted);
  update(root, before, after, null);
  drawn.set(root, after);
}
