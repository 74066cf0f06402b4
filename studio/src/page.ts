import { App } from "./app";
import "./page.css";
import type { Trace } from "./trace";

const data = document.getElementById("trace")?.textContent ?? "";
new App(document.getElementById("page")!, JSON.parse(data) as Trace).start();
