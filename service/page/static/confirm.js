// A step that cannot be taken back is asked for once more, in words that say what it does.

import { h } from "./dom.js";

export function confirmed(title, text, action, extra = null) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "confirm", "aria-labelledby": "confirm-title" });
    const form = h("form", { method: "dialog" },
      h("h2", { id: "confirm-title" }, title), h("p", null, text), extra,
      h("menu", null, h("button", { class: "quiet", value: "" }, "Cancel"), h("button", { value: "ok" }, action)));
    dialog.append(form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "ok");
    });
    document.body.append(dialog);
    dialog.showModal();
    form.querySelector("button").focus();
  });
}
