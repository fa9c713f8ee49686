"use strict";
// Stores errors on the document element, where tests and readers find them.
{
  const root = document.documentElement;
  const errors = [];
  const note = (text) => {
    errors.push(String(text));
    root.dataset.errors = JSON.stringify(errors);
  };
  root.dataset.errors = "[]";
  addEventListener("error", (event) => note(event.message || "something did not load"), true);
  addEventListener("unhandledrejection", (event) => note(event.reason));
  addEventListener("securitypolicyviolation", (event) => note(`loads ${event.blockedURI}`));
  const log = console.error;
  console.error = (...words) => {
    note(words.join(" "));
    log.apply(console, words);
  };
}
