/** Preact under the names that all views use; children may be nested and read-only. */
import { h as createElement, render, type ComponentChildren, type VNode as PreactVNode } from "preact";

export type VNode = PreactVNode<any>;
type Value = string | number | boolean | null | undefined | Handler | Readonly<Record<string, string>>;
type Handler = (event: any) => void;
export type Attributes = Readonly<Record<string, Value>>;
export type Child = VNode | string;
export type Children = Child | number | bigint | null | boolean | undefined | readonly Children[];

export function h(tag: string, attributes: Attributes = {}, ...children: Children[]): VNode {
  return createElement(tag, attributes, ...(children as ComponentChildren[]));
}

/** Make `children` the content of `root`, at once; elements that are already there are updated in place. */
export function draw(root: HTMLElement, children: Children): void {
  render(children as ComponentChildren, root);
}
