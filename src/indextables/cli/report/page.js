// The live part of the page: a condition is typed, and every zone map shows which splits survive it.
"use strict";

(async () => {
  const $ = (id) => document.getElementById(id);
  const bytes = Uint8Array.from(atob($("table").textContent.trim()), (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const table = Conditions.read(JSON.parse(await new Response(plain).text()));
  const count = table.paths.length, number = (n) => n.toLocaleString("en");
  const MAPS = 12, LISTED = 100;

  let order = Int32Array.from({ length: count }, (_, i) => i);   // place on the page -> split
  let view = [0, count];                                           // which places are shown
  let kept = new Uint8Array(count).fill(1);
  let cursor = -1;

  // --- values for people ---

  function shown(column, place) {
    if (place < 0 || place >= column.points.length) return null;
    const point = column.points[place];
    switch (column.kind) {
      case "text": return JSON.stringify(point.length > 40 ? point.slice(0, 39) + "…" : point);
      case "boolean": return point ? "true" : "false";
      case "date": return moment(Number(point) * 86400000, 10) || `day ${point}`;
      case "timestamp": return (moment(Number(point / 1000n), 23) || `${point} µs`).replace("T", " ").replace(/[.:]?0*$/, (end) => (end.startsWith(".") ? "" : end));
      case "decimal": return decimal(point, column.scale);
      case "double": case "single": return String(position(column, place));
      default: return point.toString();
    }
  }
  function moment(milliseconds, length) {
    const date = new Date(milliseconds);
    return Number.isNaN(date.getTime()) ? null : date.toISOString().slice(0, length);
  }
  function decimal(unscaled, scale) {
    const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, "0");
    const text = scale ? `${digits.slice(0, -scale)}.${digits.slice(-scale)}` : digits;
    return unscaled < 0n ? `-${text}` : text;
  }
  const BITS = new DataView(new ArrayBuffer(8));
  function position(column, place) {
    const point = column.points[place];
    if (column.kind === "text") return place;
    if (column.kind === "double") {
      BITS.setBigInt64(0, point >= 0n ? point : -point);
      return point >= 0n ? BITS.getFloat64(0) : -BITS.getFloat64(0);
    }
    if (column.kind === "single") {
      BITS.setInt32(0, Number(point >= 0n ? point : -point));
      return point >= 0n ? BITS.getFloat32(0) : -BITS.getFloat32(0);
    }
    return Number(point);
  }
  function heights(column) {
    const raw = Float64Array.from(column.points, (_, i) => position(column, i)).map((v) => Math.max(-1e300, Math.min(1e300, v)));
    const low = raw[0], span = raw[raw.length - 1] - low || 1;
    return raw.map((value) => (raw.length === 1 ? 0.5 : (value - low) / span));
  }
  function size(n) {
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (n < 1000) return `${unit === "B" ? n : n.toFixed(1)} ${unit}`;
      n /= 1000;
    }
    return `${n.toFixed(1)} TB`;
  }
  function told(column, split) {
    const { flags } = column, words = [];
    if (flags[split] & 1) {
      const low = shown(column, column.lo[split]), high = shown(column, column.hi[split]);
      words.push(low === null && high === null ? "not known" : low === high ? low : `${low ?? "…"} to ${high ?? "…"}`);
    }
    if (flags[split] & 4) words.push("NaN");
    if (flags[split] & 2) words.push("NULL");
    return `${column.name}: ${words.join(" or ") || "no rows"}`;
  }

  // --- zone maps ---

  const maps = [];

  function addMap(column) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const name = document.createElement("h3"), ends = document.createElement("span"), box = document.createElement("div");
    const canvas = document.createElement("canvas");
    name.textContent = `${column.name} (${column.type})`;
    const last = column.points.length - 1;
    ends.className = "ends";
    ends.textContent = last < 0 ? "no bounds" : `bottom ${shown(column, 0)}, top ${shown(column, last)}`;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    box.className = "map";
    caption.append(name, ends);
    box.append(canvas);
    figure.append(caption, box);
    $("maps").append(figure);
    const map = { column, canvas, height: heights(column), visible: false };
    maps.push(map);
    label(map);
    listen(map);
    seen.observe(canvas);
  }

  function label({ canvas, column }) {
    const alive = kept.reduce((sum, bit) => sum + bit, 0);
    canvas.setAttribute("aria-label", `Zone map of ${column.name}: ${number(alive)} of ${number(count)} splits kept. Arrow keys move from split to split, plus and minus zoom, zero shows all.`);
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const map = maps.find((one) => one.canvas === entry.target);
      map.visible = entry.isIntersecting;
      if (map.visible) draw(map);
    }
  }, { rootMargin: "200px" });

  function draw(map) {
    const { canvas, column, height } = map, scale = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * scale), tall = Math.round(canvas.clientHeight * scale);
    if (!width) return;
    canvas.width = width;
    canvas.height = tall;
    const style = getComputedStyle(document.documentElement), paint = canvas.getContext("2d");
    const [from, to] = view, step = width / (to - from), wide = Math.max(step - (step > 3 ? 1 : 0), 1), room = tall - 4;
    const { lo, hi, flags } = column, last = column.points.length;
    for (const wanted of [0, 1]) {
      paint.fillStyle = style.getPropertyValue(wanted ? "--kept" : "--skipped");
      paint.beginPath();
      for (let place = from; place < to; place++) {
        const split = order[place];
        if (kept[split] !== wanted || !(flags[split] & 1)) continue;
        const low = lo[split] < 0 ? 0 : height[lo[split]], high = hi[split] >= last ? 1 : height[hi[split]];
        const top = tall - 2 - high * room;
        paint.rect((place - from) * step, Math.min(top, tall - 4), wide, Math.max((high - low) * room, 2));
      }
      paint.fill();
    }
    if (cursor >= from && cursor < to) {
      paint.strokeStyle = style.getPropertyValue("--text");
      paint.strokeRect((cursor - from) * step + 0.5, 0.5, Math.max(wide, 2), tall - 1);
    }
  }

  let pending = 0;
  function redraw() {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      maps.filter((map) => map.visible).forEach(draw);
      const [from, to] = view;
      $("zoom").textContent = to - from === count ? `all ${number(count)} splits` : `splits ${number(from + 1)} to ${number(to)} of ${number(count)}`;
      $("all").disabled = to - from === count;
    });
  }

  function listen({ canvas }) {
    let start = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      return Math.max(view[0], Math.min(view[1] - 1, view[0] + Math.floor(share * (view[1] - view[0]))));
    };
    canvas.addEventListener("pointermove", (event) => point(place(event)));
    canvas.addEventListener("pointerleave", () => start === null && point(-1));
    canvas.addEventListener("pointerdown", (event) => {
      start = place(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const end = place(event), first = Math.min(start ?? end, end), last = Math.max(start ?? end, end);
      if (start !== null && last - first > 1) show(first, last + 1);
      start = null;
    });
    canvas.addEventListener("dblclick", () => show(0, count));
    canvas.addEventListener("keydown", (event) => {
      const at = cursor < 0 ? view[0] : cursor, half = Math.max((view[1] - view[0]) >> 2, 2);
      const steps = { ArrowLeft: -1, ArrowRight: 1 };
      if (event.key in steps) point(Math.max(view[0], Math.min(view[1] - 1, cursor < 0 ? at : at + steps[event.key])));
      else if (event.key === "+" || event.key === "=") show(at - half, at + half);
      else if (event.key === "-") show(view[0] - half * 2, view[1] + half * 2);
      else if (event.key === "0" || event.key === "Escape") show(0, count);
      else return;
      event.preventDefault();
    });
  }

  function show(from, to) {
    view = [Math.max(0, from), Math.min(count, to)];
    redraw();
  }

  function point(place) {
    cursor = place;
    const split = order[place];
    $("details").textContent = place < 0 ? "" : [
      `${kept[split] ? "kept" : "skipped"}: ${table.paths[split]}`,
      table.rows[split] === null ? "" : `${number(table.rows[split])} rows`, size(table.bytes[split]),
      ...table.columns.slice(0, MAPS).map((column) => told(column, split)),
    ].filter(Boolean).join(" · ");
    redraw();
  }

  // --- the condition ---

  function answer() {
    const text = $("where").value;
    history.replaceState(null, "", text.trim() ? `#where=${encodeURIComponent(text)}` : location.pathname);
    const line = $("answer");
    try {
      kept = Conditions.kept(table, text);
    } catch (problem) {
      if (!(problem instanceof Conditions.Problem)) throw problem;
      line.className = "problem";
      line.textContent = problem.message;
      return;
    }
    let splits = 0, all = 0, read = 0;
    for (let i = 0; i < count; i++) {
      all += table.bytes[i];
      if (kept[i]) (splits++, read += table.bytes[i]);
    }
    line.className = "";
    line.dataset.kept = splits;
    line.textContent = `Reads ${number(splits)} of ${number(count)} splits, ${size(read)} of ${size(all)}` +
      (count ? `: skips ${(100 * (1 - splits / count)).toFixed(splits && splits < count ? 1 : 0)} %.` : ".");
    $("share").style.width = `${count ? (100 * splits) / count : 0}%`;
    const rows = [];
    for (let i = 0; i < count && rows.length < LISTED; i++) if (kept[i]) rows.push(i);
    $("listed").replaceChildren(...rows.map((split) => {
      const row = document.createElement("tr");
      for (const cell of [table.paths[split], table.rows[split] === null ? "not known" : number(table.rows[split]), size(table.bytes[split])]) {
        row.insertCell().textContent = cell;
      }
      return row;
    }));
    maps.forEach(label);
    $("more").textContent = splits > rows.length ? `The first ${LISTED} of ${number(splits)}.` : "";
    redraw();
  }

  function examples() {
    const quoted = (name) => name.split(".").map((part) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(part) ? part : `\`${part.replaceAll("`", "``")}\``)).join(".");
    const found = [];
    for (const column of table.columns) {
      const middle = column.points.length >> 1;
      if (!column.points.length || found.length === 4) continue;
      const name = column.path.map(quoted).join(".");
      if (column.kind === "boolean") found.push(name);
      else if (column.kind === "text") found.push(`${name} LIKE '${Array.from(column.points[middle]).slice(0, 4).join("").replaceAll("'", "''").replace(/[\\%_].*/s, "")}%'`);
      else if (column.kind === "date" || column.kind === "timestamp") found.push(`${name} >= '${shown(column, middle)}'`);
      else found.push(`${name} > ${shown(column, middle)}`);
    }
    if (found.length > 1) found.push(`${found[0]} AND NOT (${found[1]})`);
    for (const text of found.filter(isReadable)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "example";
      button.textContent = text;
      button.addEventListener("click", () => (($("where").value = text), answer()));
      $("examples").append(button);
    }
  }
  function isReadable(text) {
    try {
      return Boolean(Conditions.parse(text, table.columns));
    } catch {
      return false;
    }
  }

  function sort() {
    const column = table.columns[Number($("order").value)];
    order = Int32Array.from({ length: count }, (_, i) => i);
    if (column) order.sort((a, b) => column.lo[a] - column.lo[b] || column.hi[a] - column.hi[b] || a - b);
    point(-1);
  }

  table.columns.forEach((column, i) => {
    const option = document.createElement("option");
    option.value = i;
    option.textContent = `by ${column.name}`;
    $("order").append(option);
  });
  table.columns.slice(0, MAPS).forEach(addMap);
  if (table.columns.length > MAPS) {
    const more = document.createElement("button");
    more.textContent = `Show ${number(table.columns.length - MAPS)} more columns`;
    more.addEventListener("click", () => (more.remove(), table.columns.slice(MAPS).forEach(addMap)));
    $("maps").after(more);
  }
  if (table.leftOut.length) $("left").textContent = `Without bounds to draw or ask: ${table.leftOut.join(", ")}.`;
  examples();
  $("where").addEventListener("input", answer);
  $("order").addEventListener("change", sort);
  $("all").addEventListener("click", () => show(0, count));
  window.addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  if (location.hash.startsWith("#where=")) $("where").value = decodeURIComponent(location.hash.slice(7));
  $("live").hidden = false;
  answer();
})();
