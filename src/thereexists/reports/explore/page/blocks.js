// Pictures of standard blocks: the residual stream; the doubling tree of an automaton; the counts of a group.

function drawStream(at) {
  const frame = seen.frames[at], before = seen.frames[Math.max(0, at - 1)], picture = $("picture");
  const WIDTH = widthOf(picture), n = frame.stream.length, columns = about.rows, fired = frame.fired || [];
  const left = fired.length ? LEFT + 40 : LEFT, most_wide = Math.max(26, Math.min(56, 400 / columns));  // few rows are drawn wide
  const side = Math.min(most_wide, (WIDTH - left - 10) / columns), tall = Math.max(12, Math.min(26, 4 * side));
  const x = (row) => left + row * side, named = groupNames((frame.groups || about.groups || []).filter(([, first]) => first < columns), x, WIDTH);
  const top = 28 + 13 * Math.max(0, ...named.map((group) => group.level)), lines = top + n * (tall + 2);
  picture.dataset.key = "stream";
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${lines + (fired.length ? 26 + fired.length * (tall + 2) : 0) + 30}`);
  named.forEach(({ name, first, size, level, middle, at }) => {
    const wide = Math.min(size, columns - first) * side, group = draw(picture, "g", {}), y = top - 12 - 13 * level;
    draw(group, "title", {}, `${name}: rows ${first} to ${first + size - 1}`);
    draw(group, "path", { class: "bracket", d: `M${x(first) + 1},${top - 4}v-4h${Math.max(1, wide - 3)}v4` + (level ? `M${middle},${top - 8}V${y + 3}` : "") });
    draw(group, "text", { class: "link-name", x: at, y, "text-anchor": "middle" }, name);
  });
  const most = Math.max(1, ...frame.stream.flat().map((v) => Math.abs(symlog(v))));
  frame.stream.forEach((token, j) => {
    const y = j * (tall + 2) + top;
    draw(picture, "text", { x: left - 10, y: y + tall / 2 + 4, "text-anchor": "end" }, `token ${j}`);
    draw(picture, "rect", { class: "plate", x: left, y, width: columns * side, height: tall });
    token.forEach((v, i) => {
      if (!v && v !== null) return;
      const cell = { class: v < 0 ? "minus" : "plus", x: x(i), y, width: Math.max(side - .6, .6), height: tall };
      const now = draw(picture, "rect", cell);
      draw(now, "title", {}, `token ${j}, row ${i}: ${show(v)}`);
      now.setAttribute("fill-opacity", (.25 + .75 * Math.abs(symlog(v)) / most).toFixed(2));
      if (at && before.stream[j][i] !== v) now.setAttribute("stroke", "currentColor");
    });
  });
  if (fired.length) drawKeys(picture, fired, { x, side, tall, y: lines + 22 });
  picture.setAttribute("aria-label", "The residual stream: " + frame.stream.map((token, j) =>
    `token ${j}, ${token.filter((v) => v).length} rows not zero`).join("; "));
  $("note").textContent = fired.length
    ? "Below, the key of the unit that fires at each token: ● its gate, which is on; × rows that contradict the key. All × are blank in " +
      "the token's line above, so nothing is taken from the gate. " + fired.slice(0, 1).map(rivalWords).join("")
    : "One line for each token, one cell for each row of the stream; zero is blank, negative numbers have the second colour, an " +
      "outline marks what this block changed." +
      (about.rows_left_out ? ` ${count(about.rows_left_out)} more rows are not drawn.` : "");
}

function groupNames(groups, x, WIDTH) {  // every name in full: one that would cover its neighbour's stands a line higher
  const ends = [];
  return groups.map(([name, first, size]) => {
    const middle = (x(first) + x(first + size)) / 2, wide = 6.6 * name.length + 8;
    const at = Math.max(wide / 2, Math.min(WIDTH - wide / 2, middle)), free = ends.findIndex((end) => end <= at - wide / 2);
    const level = free < 0 ? ends.length : free;
    ends[level] = at + wide / 2;
    return { name, first, size, level, middle, at };
  });
}

function drawKeys(picture, fired, { x, side, tall, y }) {  // aligned with the rows that they read
  const left = x(0);
  draw(picture, "text", { x: left, y: y - 6 }, "key of the unit that fires");
  fired.forEach(({ token, unit, gate, must }, k) => {
    const middle = y + k * (tall + 2) + tall / 2;
    draw(picture, "text", { x: left - 10, y: middle + 4, "text-anchor": "end" }, `token ${token}: unit ${unit}`);
    draw(picture, "path", { class: "lane", d: `M${left},${middle}H${x(about.rows)}` });
    const r = Math.min(4, side / 3);
    gate.forEach((row) => draw(picture, "circle", { class: "gate", cx: x(row) + side / 2, cy: middle, r }));
    must.forEach((row) => { const c = x(row) + side / 2;
      draw(picture, "path", { class: "must", d: `M${c - r},${middle - r}l${2 * r},${2 * r}m0,${-2 * r}l${-2 * r},${2 * r}` }); });
  });
}

const rivalWords = ({ token, rival, stops }) => rival === null ? ""
  : `The nearest other unit at token ${token}, ${rival}, is silenced by row${stops.length === 1 ? "" : "s"} ${stops.slice(0, 6).join(", ")}.`;

function drawDoubling(at) {
  const frame = seen.frames[at], picture = $("picture"), WIDTH = widthOf(picture), held = frame.held.slice(1);
  const n = held.length, step = Math.min(40, (WIDTH - LEFT - 10) / Math.max(1, n)), tall = Math.max(18, Math.min(30, 320 / n)), top = 26;
  const x = (j) => LEFT + (j - .5) * step, y = (j) => top + (j - 1) * tall;
  const wide = LEFT + n * step + 16, told = wide + 40 < WIDTH;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${top + n * tall + 24}`);
  seen.words.forEach((word, i) => draw(picture, "text", { x: x(i + 1), y: 14, "text-anchor": "middle" }, word));
  held.forEach((h) => {
    const j = h.position, end = x(j) + .4 * step, start = h.first > j ? end : x(h.first) - .4 * step;
    draw(picture, "text", { x: LEFT - 10, y: y(j) + 9, "text-anchor": "end" }, `position ${j}`);
    draw(picture, "rect", { class: h.first === 1 ? "f1" : "f0", x: start, y: y(j), width: Math.max(1, end - start), height: 8, rx: 3 });
    if (told) draw(picture, "text", { x: wide, y: y(j) + 9 }, h.map.map((r) => r === null ? "·" : r).join(" "));
  });
  held.filter((h) => h.fetched).forEach((h) => {  // above all bars
    draw(picture, "path", { class: "fetch", d: `M${x(h.fetched)},${y(h.fetched) + 4}V${y(h.position) + 4}` });
    draw(picture, "circle", { class: "fetch", cx: x(h.fetched), cy: y(h.position) + 4, r: 2 });
  });
  picture.setAttribute("aria-label", held.map((h) => `position ${h.position} holds symbols ${h.first} to ${h.last}`).join("; "));
  $("note").textContent = "A bar is the segment whose map a position holds, in the second colour once it is the whole prefix; a line " +
    "leads from the position whose map was fetched." +
    (told ? " On the right is the map: the states that 0, 1, 2, … lead to, · for the dead one." : "");
}

function drawCounting(at) {
  const frame = seen.frames[at], picture = $("picture"), WIDTH = widthOf(picture), lanes = frame.lanes, tall = 20, counters = Math.max(...lanes.map((lane) => lane.marks.length));
  const top = counters ? 34 : 14;
  const room = 24 + 6.6 * Math.max(...lanes.map((lane) => lane.text.length)), told = WIDTH - LEFT - room > 90;  // else: dots only
  const right = told ? WIDTH - room : WIDTH - 30, x = (share) => LEFT + share * (right - LEFT);
  const ends = frame.layer < 1 ? null : frame.layer < 2 ? ["0", "1"] : ["position 0", `position ${Math.max(1, lanes.length - 1)}`];
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${top + lanes.length * tall + 24}`);
  lanes.forEach((lane, j) => {
    const y = top + j * tall;
    draw(picture, "text", { x: LEFT - 10, y: y + 4, "text-anchor": "end" }, j ? `${j}: ${seen.words[j - 1]}` : "0");
    draw(picture, "path", { class: "lane", d: `M${LEFT},${y}H${right}` });
    lane.marks.forEach((share, g) => draw(draw(picture, "g", { class: `token hue${g % 6}` }), "circle",
      { cx: x(share), cy: y + (g - (lane.marks.length - 1) / 2) * Math.min(5, 12 / lane.marks.length), r: 3.5 }));
    if (told) draw(picture, "text", { x: right + 12, y: y + 4 }, lane.text);
  });
  for (let g = 0; g < Math.min(counters, 6); g++) {  // the key
    draw(draw(picture, "g", { class: `token hue${g}` }), "circle", { cx: LEFT + 5 + 84 * g, cy: 8, r: 3.5 });
    draw(picture, "text", { x: LEFT + 14 + 84 * g, y: 12 }, `counter ${g + 1}`);
  }
  if (ends) ends.forEach((end, i) => draw(picture, "text", { x: x(i), y: top + lanes.length * tall + 8, "text-anchor": "middle" }, end));
  picture.setAttribute("aria-label", lanes.map((lane, j) => `position ${j}: ${lane.text}`).join("; "));
  $("note").textContent = frame.layer < 1 ? "A line for every position, with its symbol." : frame.layer < 2
    ? "A dot for every counter: its share of the positions so far. The last number is the share of the flag, 1/(position + 1)."
    : "A dot for every counter: the position that its head looks up, which is the count; the counts lead to the state.";
}
