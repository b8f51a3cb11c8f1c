// Whoever copies a block of a console gets its commands, without the prompts and what they printed.
const commandsOf = (shown) => {
  const commands = [];
  let goesOn = false;
  for (const line of shown.split("\n")) {
    if (goesOn || line.startsWith("$ ")) {
      commands.push(line.replace(/^\$ /, ""));
      goesOn = line.endsWith("\\");
    }
  }
  return commands.join("\n");
};

document.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest?.(".language-console .md-code__button");
    const code = button?.closest("pre").querySelector("code");
    if (code) button.setAttribute("data-clipboard-text", commandsOf(code.textContent));
  },
  true, // before the theme copies
);
