// The input: a slider for each number, or words that can be typed, chosen and dragged to another place.

let put = () => {};    // (token, feature, value): one entry, everywhere it is shown
let snap = () => {};   // put the sliders where a stored input is

function sliders() {
  const box = $("input"), entries = [];
  input = { x: about.start.map((token) => token.slice()) };
  for (let j = 0; j < about.n; j++) for (let i = 0; i < about.d; i++) {
    const id = `x-${j}-${i}`, low = about.low[i], high = about.high[i];
    const row = make("div", { class: `slider hue${j % 6}` }), label = make("label", { for: id });
    label.append(make("span", { class: "dot" }), tokenName(j, i));
    const step = (high - low) / (about.positions || 1000), inset = about.positions ? step / 2 : 0;
    const range = make("input", { id, type: "range", min: low + inset, max: high - inset, step: about.positions ? "any" : step });
    const value = make("output", { for: id });
    const set = (v) => {
      const inside = Math.min(high, Math.max(low, v));
      range.value = inside; input.x[j][i] = inside; value.textContent = show(Number(inside.toPrecision(4)));
    };
    set(about.start[j][i]);
    entries.push({ j, i, low, high, set });
    range.addEventListener("input", () => { set(Number(range.value)); changed(); });
    row.append(label, range, value);
    box.append(row);
  }
  put = (j, i, v) => { entries[j * about.d + i].set(v); changed(); };
  snap = (x) => entries.forEach(({ j, i, set }) => set(x[j][i]));
  const random = make("button", { id: "random" }, "Random input");
  random.addEventListener("click", () => {
    entries.forEach(({ low, high, set }) => set(low + Math.round(1000 * Math.random()) / 1000 * (high - low)));
    changed();
  });
  box.append(random);
}

function words() {
  const box = $("input");
  box.className = "words";
  input = { words: about.start };
  const field = make("input", { id: "words", type: "text", autocomplete: "off", spellcheck: "false" });
  const list = make("select", { id: "example" }), row = make("ol", { id: "tokens", class: "tokens" });
  about.examples.forEach((example, i) => list.append(make("option", { value: i }, example.join(" "))));
  const set = (list) => { input = { words: list }; field.value = list.join(" "); tiles(row); changed(); };
  field.value = about.start.join(" ");
  field.addEventListener("input", () => {
    input = { words: field.value.split(/\s+/).filter(Boolean) };
    tiles(row);
    changed();
  });
  list.addEventListener("change", () => set(about.examples[list.value]));
  snap = (list) => { input = { words: list }; field.value = list.join(" "); tiles(row); };
  put = (from, to) => {
    const moved = input.words.slice();
    moved.splice(to, 0, ...moved.splice(from, 1));
    set(moved);
  };
  tiles(row);
  box.append(make("label", { for: "words" }, `Tokens, ${about.fixed ? "exactly" : "at most"} ${about.n}`), field,
    make("label", { for: "example" }, about.offered || "or a stored input"), list);
  if (!stored) box.append(make("p", { class: "soft" }, "Drag a token to another place:"), row);
}

function tiles(row) {  // one button for each token: drag it, or move it by the arrow keys
  row.replaceChildren(...input.words.map((word, k) => {
    const item = make("li"), tile = make("button", { "data-at": k, title: "Drag, or use the arrow keys" }, word);
    tile.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const release = (e) => {
        const over = document.elementFromPoint(e.clientX, e.clientY)?.closest("#tokens button");
        if (over && Number(over.dataset.at) !== k) put(k, Number(over.dataset.at));
      };
      window.addEventListener("pointerup", release, { once: true });
    });
    tile.addEventListener("keydown", (event) => {
      const to = k + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] || 0);
      if (to === k || to < 0 || to >= input.words.length) return;
      event.preventDefault();
      put(k, to);
      row.children[to].firstChild.focus();
    });
    item.append(tile);
    return item;
  }));
}
