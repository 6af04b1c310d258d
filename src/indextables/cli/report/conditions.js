// Which splits a condition keeps, from the bounds and counts embedded in the page: the rules of core/states.py,
// core/domain/truth.py and core/prune/evaluate.py for conditions that compare one column with constants.
// Held against those by tests/cli/test_live_report.py.
"use strict";

const Conditions = (() => {
  // --- text to tokens ---

  const TOKEN = /\s*(?:(`(?:[^`]|``)*`)|('(?:[^'\\]|''|\\[\s\S])*')|(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|(<=>|<>|!=|<=|>=|==|[-+()=<>,.]))/uy;
  const WORDS = new Set(["and", "or", "not", "in", "between", "like", "is", "null", "true", "false", "nan", "isnan", "date", "timestamp"]);

  class Problem extends Error {}

  function tokens(text) {
    const found = [];
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < text.length) {
      const at = TOKEN.lastIndex, hit = TOKEN.exec(text);
      if (!hit) {
        if (!text.slice(at).trim()) break;
        throw new Problem(`cannot read ${JSON.stringify(text.slice(at).trim().slice(0, 20))}`);
      }
      const [, quoted, string, number, word, sign] = hit;
      if (quoted !== undefined) found.push({ kind: "name", value: quoted.slice(1, -1).replaceAll("``", "`") });
      else if (string !== undefined) {
        if (string.includes("\\")) throw new Problem("a backslash in a text is not read here");
        found.push({ kind: "text", value: string.slice(1, -1).replaceAll("''", "'") });
      } else if (number !== undefined) found.push({ kind: "number", value: number });
      else if (word !== undefined) {
        const low = word.toLowerCase();
        found.push(WORDS.has(low) ? { kind: low, value: word } : { kind: "name", value: word });
      } else found.push({ kind: sign, value: sign });
    }
    return found;
  }

  // --- tokens to a tree: {op: "and"|"or", parts}, {op: "not", part}, {column, truth}, {constant} ---

  function parse(text, columns) {
    const all = tokens(text);
    let at = 0;
    const peek = (kind) => at < all.length && all[at].kind === kind;
    const take = (kind) => peek(kind) && all[at++];
    const need = (kind, what) => take(kind) || fail(what);
    const fail = (what) => {
      throw new Problem(at < all.length ? `expected ${what} before ${JSON.stringify(all[at].value)}` : `expected ${what} at the end`);
    };

    function joined(op, inner) {
      const parts = [inner()];
      while (take(op)) parts.push(inner());
      return parts.length === 1 ? parts[0] : { op, parts };
    }
    const either = () => joined("or", () => joined("and", negated));
    const negated = () => (take("not") ? { op: "not", part: negated() } : primary());

    function primary() {
      if (take("(")) {
        const inner = either();
        need(")", "a closing parenthesis");
        return inner;
      }
      if (take("isnan")) {
        need("(", "a parenthesis");
        const column = reference();
        need(")", "a closing parenthesis");
        if (!column.floats) throw new Problem(`isnan asks for a floating-point column, and ${column.name} is ${column.type}`);
        return leaf(column, { true: { cuts: [], nan: true }, false: { cuts: column.universe }, null: {} });
      }
      if (peek("name")) return predicate(reference());
      const left = literal();
      const op = comparison();
      if (!op) return constant(left);
      return compare(reference(), FLIPPED[op] || op, left);
    }

    function constant(value) {
      if (value.kind === "null") return { constant: null };
      if (value.kind === "true" || value.kind === "false") return { constant: value.kind === "true" };
      return fail("a comparison");
    }

    function reference() {
      const path = [need("name", "the name of a column").value];
      while (take(".")) path.push((take("name") || fail("a field")).value);
      const same = (a, b) => a.length === b.length && a.every((part, i) => part === b[i]);
      const lower = path.map((part) => part.toLowerCase());
      const found = columns.find((c) => same(c.path, path)) || columns.find((c) => same(c.path.map((p) => p.toLowerCase()), lower));
      if (!found) throw new Problem(`no column ${path.join(".")} with statistics in this page`);
      return found;
    }

    function comparison() {
      for (const op of ["=", "==", "<>", "!=", "<=", ">=", "<=>", "<", ">"])
        if (take(op)) return { "==": "=", "!=": "<>" }[op] || op;
      return null;
    }

    function literal() {
      const negative = take("-") ? "-" : (take("+"), "");
      if (peek("number")) return { kind: "number", value: negative + all[at++].value };
      if (negative) fail("a number");
      if (peek("date") || peek("timestamp")) {
        const kind = all[at++].kind;
        return { kind, value: need("text", "a text in quotes").value };
      }
      for (const kind of ["text", "true", "false", "null", "nan"]) if (peek(kind)) return { kind, value: all[at++].value };
      return fail("a constant");
    }

    function predicate(column) {
      if (take("is")) {
        const no = take("not");
        need("null", "NULL");
        const node = leaf(column, { true: { null: true }, false: valuesOf(column), null: {} });
        return no ? { op: "not", part: node } : node;
      }
      const no = take("not");
      const wrap = (node) => (no ? { op: "not", part: node } : node);
      if (take("in")) {
        need("(", "a parenthesis");
        const values = [literal()];
        while (take(",")) values.push(literal());
        need(")", "a closing parenthesis");
        return wrap(isIn(column, values));
      }
      if (take("between")) {
        const low = literal();
        need("and", "AND");
        return wrap({ op: "and", parts: [compare(column, ">=", low), compare(column, "<=", literal())] });
      }
      if (take("like")) return wrap(like(column, need("text", "a pattern in quotes").value));
      if (no) fail("IN, BETWEEN or LIKE");
      const op = comparison();
      if (op) {
        if (peek("name")) throw new Problem("two columns are not compared here");
        return compare(column, op, literal());
      }
      if (column.kind !== "boolean") throw new Problem(`${column.name} is no condition by itself: compare it with something`);
      return compare(column, "=", { kind: "true" });
    }

    if (!all.length) return { constant: true };
    const whole = either();
    if (at < all.length) fail("the end");
    return whole;
  }

  // --- what each leaf says of its column: the states that make it TRUE, FALSE and NULL ---

  const FLIPPED = { "<": ">", ">": "<", "<=": ">=", ">=": "<=" };
  const valuesOf = (column) => ({ cuts: column.universe, nan: column.floats });
  const leaf = (column, truth) => ({ column, truth });

  function unlessNull(column, states) {
    return leaf(column, { true: states, false: without(column, valuesOf(column), states), null: { null: true } });
  }

  /** Returns NULL as a condition on this column. */
  const unknown = (column) => ({ true: {}, false: {}, null: { ...valuesOf(column), null: true } });

  function compare(column, op, value) {
    if (op === "<=>") {
      if (value.kind === "null") return leaf(column, { true: { null: true }, false: valuesOf(column), null: {} });
      const { truth } = compare(column, "=", value);
      return leaf(column, { true: truth.true, false: anyOf(column, [truth.false, truth.null]), null: {} });
    }
    if (value.kind === "null") return { constant: null };
    const place = placed(column, value), [first, last] = column.universe;
    if (place === NAN) {
      const cuts = ["<", "<=", "<>"].includes(op) ? column.universe : [];
      return unlessNull(column, { cuts, nan: ["=", "<=", ">="].includes(op) });
    }
    const { below, above } = place, line = (from, to) => (column.less(from, to) ? [from, to] : []);
    const cuts = {
      "=": () => line(below, above),
      "<>": () => complement(column, line(below, above)),
      "<": () => line(first, below),
      "<=": () => line(first, above),
      ">": () => line(above, last),
      ">=": () => line(below, last),
    }[op]();
    return unlessNull(column, { cuts: sweep(column, [column.universe, cuts], 2), nan: column.floats && [">", ">=", "<>"].includes(op) });
  }

  function isIn(column, values) {
    const known = values.filter((value) => value.kind !== "null");
    if (!known.length) return { constant: null };
    const found = known.map((value) => compare(column, "=", value).truth.true);
    const listed = anyOf(column, found);
    if (known.length === values.length) return unlessNull(column, listed);
    const rest = anyOf(column, [without(column, valuesOf(column), listed), { null: true }]);
    return leaf(column, { true: listed, false: {}, null: rest });
  }

  function like(column, pattern) {
    if (column.kind !== "text") throw new Problem(`LIKE asks for a text column, and ${column.name} is ${column.type}`);
    const end = pattern.search(/[%_]/);
    if (end < 0) return compare(column, "=", { kind: "text", value: pattern });
    const states = { cuts: prefixed(pattern.slice(0, end)) };
    if (end === pattern.length - 1 && pattern[end] === "%") return unlessNull(column, states);
    return leaf(column, { true: states, false: valuesOf(column), null: { null: true } });
  }

  function prefixed(prefix) {
    const points = Array.from(prefix, (c) => c.codePointAt(0));
    while (points.length) {
      const last = points.pop() + 1;
      if (last > 0x10ffff) continue;
      points.push(last >= 0xd800 && last < 0xe000 ? 0xe000 : last);
      return [prefix, String.fromCodePoint(...points)];
    }
    return [prefix, TOP];
  }

  // --- a constant as a place on the line of a column's values: between which cuts it lies ---

  const TOP = Symbol("above every text"), NAN = Symbol("NaN");

  function placed(column, value) {
    const { kind } = column;
    const wrong = (wanted) => new Problem(`${column.name} is ${column.type}: compare it with ${wanted}`);
    if (kind === "text") {
      if (value.kind !== "text") throw wrong("a text in quotes");
      return { below: value.value, above: value.value + "\0" };
    }
    if (kind === "boolean") {
      if (value.kind !== "true" && value.kind !== "false") throw wrong("true or false");
      return exactly(value.kind === "true" ? 1n : 0n);
    }
    if (kind === "date") {
      if (value.kind !== "text" && value.kind !== "date") throw wrong("a date such as '2024-05-31'");
      return exactly(days(value.value));
    }
    if (kind === "timestamp") {
      if (value.kind !== "text" && value.kind !== "timestamp") throw wrong("a time such as '2024-05-31 12:00:00'");
      return exactly(micros(value.value));
    }
    if (value.kind === "nan" || (value.kind === "text" && /^nan$/i.test(value.value) && column.floats)) {
      if (column.floats) return NAN;
      throw wrong("a number");
    }
    if (value.kind !== "number") throw wrong("a number");
    if (kind === "double") return exactly(sortable(Number(value.value), 64));
    if (kind === "single") {
      const number = Number(value.value), near = Math.fround(number), place = sortable(near, 32);
      if (near === number) return exactly(place);
      const below = near > number ? place : place + 1n;
      return { below, above: below };
    }
    return scaled(value.value, column.scale || 0);
  }

  const exactly = (ordinal) => ({ below: ordinal, above: ordinal + 1n });

  /** Returns the cuts around a decimal text times 10 to the power of the scale. */
  function scaled(text, scale) {
    const [, sign, whole, part = "", power = "0"] = /^([-+]?)(\d*)\.?(\d*)?(?:[eE]([-+]?\d+))?$/.exec(text);
    const shift = Number(power) + scale - part.length;
    if (Math.abs(shift) > 400) throw new Problem(`${text} is beyond every value`);
    const digits = BigInt(whole + part || "0") * (sign === "-" ? -1n : 1n);
    if (shift >= 0) return exactly(digits * 10n ** BigInt(shift));
    const divisor = 10n ** BigInt(-shift), rest = ((digits % divisor) + divisor) % divisor;
    const floor = (digits - rest) / divisor;
    return rest === 0n ? exactly(floor) : { below: floor + 1n, above: floor + 1n };
  }

  const VIEW = new DataView(new ArrayBuffer(8));

  function sortable(number, bits) {
    if (bits === 64) {
      VIEW.setFloat64(0, number + 0);
      const raw = VIEW.getBigInt64(0);
      return raw >= 0n ? raw : -(raw & 0x7fffffffffffffffn);
    }
    VIEW.setFloat32(0, number + 0);
    const raw = VIEW.getInt32(0);
    return BigInt(raw >= 0 ? raw : -(raw & 0x7fffffff));
  }

  const DATE = /^\s*(\d{4})-(\d{1,2})-(\d{1,2})$/;

  function days(text) {
    const hit = DATE.exec(text.trim());
    const found = hit && day(hit);
    if (found === null) throw new Problem(`${JSON.stringify(text)} is no date: write it as 2024-05-31`);
    return BigInt(found);
  }

  function day([, year, month, date]) {
    const moment = new Date(0);
    moment.setUTCFullYear(Number(year), Number(month) - 1, Number(date));
    const same = moment.getUTCFullYear() === Number(year) && moment.getUTCMonth() === month - 1 && moment.getUTCDate() === Number(date);
    return same ? Math.round(moment.getTime() / 86400000) : null;
  }

  function micros(text) {
    const hit = /^(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?:Z|UTC)?)?$/.exec(text.trim());
    const date = hit && DATE.exec(hit[1]), found = date && day(date);
    const [hour, minute, second] = hit ? hit.slice(2, 5).map((part) => Number(part || 0)) : [24];
    if (found === null || hour > 23 || minute > 59 || second > 59) {
      throw new Problem(`${JSON.stringify(text)} is no time: write it as 2024-05-31 12:00:00, in UTC`);
    }
    const seconds = ((BigInt(found) * 24n + BigInt(hour)) * 60n + BigInt(minute)) * 60n + BigInt(second);
    return seconds * 1000000n + BigInt((hit[5] || "").padEnd(6, "0"));
  }

  // --- sets of states: cuts in order (start, end, start, end …), NULL and NaN ---

  function sweep(column, sets, needed) {
    const events = sets.flatMap((cuts) => cuts.map((cut, i) => ({ cut, step: i % 2 ? -1 : 1 })));
    events.sort((a, b) => (column.less(a.cut, b.cut) ? -1 : column.less(b.cut, a.cut) ? 1 : 0));
    const found = [];
    let depth = 0;
    for (let i = 0; i < events.length; ) {
      const { cut } = events[i], before = depth >= needed;
      while (i < events.length && !column.less(cut, events[i].cut)) depth += events[i++].step;
      if (before !== depth >= needed) found.push(cut);
    }
    return found;
  }

  const cutsOf = (states) => states.cuts || [];
  const complement = (column, cuts) => minus(column, column.universe, cuts);

  /** Returns what the first set holds and the second does not. */
  function minus(column, from, taken) {
    const [first, last] = column.universe, outside = [];
    let start = first;
    for (let i = 0; i < taken.length; i += 2) {
      if (column.less(start, taken[i])) outside.push(start, taken[i]);
      start = taken[i + 1];
    }
    if (column.less(start, last)) outside.push(start, last);
    return sweep(column, [from, outside], 2);
  }

  const without = (column, states, taken) => ({
    cuts: cutsOf(states).length ? minus(column, cutsOf(states), cutsOf(taken)) : [],
    null: Boolean(states.null && !taken.null),
    nan: Boolean(states.nan && !taken.nan),
  });
  const anyOf = (column, sets) => ({
    cuts: sweep(column, sets.map(cutsOf), 1), null: sets.some((s) => s.null), nan: sets.some((s) => s.nan),
  });
  const allOf = (column, sets) => ({
    cuts: sweep(column, sets.map(cutsOf), sets.length), null: sets.every((s) => s.null), nan: sets.every((s) => s.nan),
  });

  const not = (truth) => ({ true: truth.false, false: truth.true, null: truth.null });

  function conjunction(column, parts) {
    const nowhereFalse = allOf(column, parts.map((p) => anyOf(column, [p.true, p.null])));
    return {
      true: allOf(column, parts.map((p) => p.true)),
      false: anyOf(column, parts.map((p) => p.false)),
      null: allOf(column, [nowhereFalse, anyOf(column, parts.map((p) => p.null))]),
    };
  }

  // --- the tree without NOT, each column once below an AND or OR ---

  function folded(node, negated = false) {
    if (node.op === "not") return folded(node.part, !negated);
    if (node.column) return negated ? { column: node.column, truth: not(node.truth) } : node;
    if (!node.op) return { constant: node.constant === null ? null : node.constant !== negated };
    const op = (node.op === "and") === negated ? "or" : "and";
    const gathered = new Map(), constants = new Set(), others = [];
    const add = (part) => {
      if (part.op === op) part.parts.forEach(add);
      else if (part.column) gathered.set(part.column, [...(gathered.get(part.column) || []), part.truth]);
      else if (part.op) others.push(part);
      else constants.add(part.constant);
    };
    node.parts.forEach((part) => add(folded(part, negated)));
    const neutral = op === "and";
    if (constants.has(!neutral)) return { constant: !neutral };
    const parts = [...gathered].map(([column, truths]) => {
      if (constants.delete(null)) truths.push(unknown(column));
      return { column, truth: neutral ? conjunction(column, truths) : not(conjunction(column, truths.map(not))) };
    });
    parts.push(...others);
    if (constants.has(null) || !parts.length) parts.push({ constant: constants.has(null) ? null : neutral });
    return parts.length === 1 ? parts[0] : { op, parts };
  }

  // --- the tree over all splits ---

  function overlaps(column, states) {
    const { lo, hi, flags } = column, count = flags.length, hit = new Uint8Array(count), cuts = cutsOf(states);
    const bits = (states.null ? 2 : 0) | (states.nan ? 4 : 0);
    for (let i = 0; i < count; i++) hit[i] = flags[i] & bits ? 1 : 0;
    for (let c = 0; c < cuts.length; c += 2) {
      const start = column.rank(cuts[c]), end = column.rank(cuts[c + 1]);
      for (let i = 0; i < count; i++) if (flags[i] & 1 && lo[i] < end && hi[i] >= start) hit[i] = 1;
    }
    return hit;
  }

  function mask(tree, count) {
    if (tree.column) return overlaps(tree.column, tree.truth.true);
    if (!tree.op) return new Uint8Array(count).fill(tree.constant === true ? 1 : 0);
    const found = mask(tree.parts[0], count);
    for (const part of tree.parts.slice(1)) {
      const next = mask(part, count);
      for (let i = 0; i < count; i++) found[i] = tree.op === "and" ? found[i] & next[i] : found[i] | next[i];
    }
    return found;
  }

  // --- the embedded table ---

  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  function lessText(a, b) {
    if (a === TOP || b === TOP) return a !== TOP && b === TOP;
    if (!/[\ud800-\udfff]/.test(a) && !/[\ud800-\udfff]/.test(b)) return a < b;
    const x = Array.from(a, (c) => c.codePointAt(0)), y = Array.from(b, (c) => c.codePointAt(0));
    const at = x.findIndex((point, i) => point !== y[i]);
    return at < 0 ? x.length < y.length : at < y.length && x[at] < y[at];
  }

  function readColumn(raw) {
    const text = raw.kind === "text";
    const points = text ? raw.points : raw.points.map(BigInt);
    const less = text ? lessText : (a, b) => a < b;
    const rank = (cut) => {
      let low = 0, high = points.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (less(points[middle], cut)) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return {
      ...raw, points, less, rank,
      floats: raw.kind === "double" || raw.kind === "single",
      universe: text ? ["", TOP] : raw.universe.map(BigInt),
      lo: new Int32Array(bytesOf(raw.lo).buffer),
      hi: new Int32Array(bytesOf(raw.hi).buffer),
      flags: bytesOf(raw.flags),
    };
  }

  /** Returns the embedded table, with its columns ready to be asked. */
  const read = (raw) => ({ ...raw, columns: raw.columns.map(readColumn), holdsRows: bytesOf(raw.holdsRows) });

  /** Returns one byte per split: 1 where some row may satisfy the condition. Throws Problem where it cannot be read. */
  function kept(table, text) {
    const found = mask(folded(parse(text, table.columns)), table.holdsRows.length);
    return found.map((bit, i) => bit & table.holdsRows[i]);
  }

  return { Problem, read, kept, parse };
})();
