import type { ComponentChildren } from "preact";
import type { Children } from "../dom";

/** What a view returned, as children of an element of Preact. */
export const node = (children: Children): ComponentChildren => children as ComponentChildren;
