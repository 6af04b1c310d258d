"""PyArrow's expressions as conditions, and what they mean to engines that rank NaN above numbers."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from indextables.arrow.expression_tree import Call, FieldRef, Taken, Tree, Value, take_apart
from indextables.arrow.literals import literal_of
from indextables.core.predicate import (
    BoolRef,
    Compare,
    CompareOp,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Opaque,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from indextables.core.types import FieldPath, StructType, is_float, leaves, path_text

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_UNREADABLE: Final = "only Arrow can evaluate it"
# null_matching_behavior of is_in, by Arrow's numbers
_MATCH, _SKIP = 0, 1


def predicate_of(expression: Any, nan: NanRule = NanRule.IEEE) -> Predicate:
    """The condition an expression is; what statistics cannot answer is Opaque.

    NaN compares by `nan`: PyArrow's own rule is IEEE's, an engine that hands its condition over in
    PyArrow's form may mean another.
    """
    taken = take_apart(expression)
    if taken is None:
        return Opaque(str(expression), (), "PyArrow spells it in an unknown way")
    return _Reader(nan).condition(taken.tree)


def fields_of(expression: Any) -> frozenset[str] | None:
    """The top-level columns an expression reads; None if that cannot be told."""
    taken = take_apart(expression)
    paths = None if taken is None else _paths(taken.tree)
    return None if paths is None else frozenset(path[0] for path in paths)


def _paths(tree: Tree) -> set[FieldPath] | None:
    match tree:
        case FieldRef(path):
            return {path} if path else None
        case Value():
            return set()
        case Call(_, arguments):
            found: set[FieldPath] = set()
            for paths in map(_paths, arguments):
                if paths is None:
                    return None
                found |= paths
            return found


class _Reader:
    def __init__(self, nan: NanRule) -> None:
        self._nan = nan

    def condition(self, tree: Tree) -> Predicate:
        match tree:
            case FieldRef(path) if path:
                return BoolRef(Ref(path))
            case Value(scalar) if pa.types.is_boolean(scalar.type) or pa.types.is_null(scalar.type):
                return Constant(scalar.as_py())
            case Call("and_kleene", (left, right)):
                return self.condition(left) & self.condition(right)
            case Call("or_kleene", (left, right)):
                return self.condition(left) | self.condition(right)
            case Call("invert", (child,)):
                return Not(self.condition(child))
            case Call(name, (left, right)) if op := _COMPARISONS.get(name):
                return self._compare(op, left, right, tree)
            case Call("if_else", (Call("is_valid" | "is_null"), _, _) as parts):
                return self._if_else(*map(self.condition, parts))
            case Call(_, (FieldRef(path),)) if path:
                return self._of_field(tree, Ref(path))
            case _:
                return self._opaque(tree)

    def _compare(self, op: CompareOp, left: Tree, right: Tree, tree: Tree) -> Predicate:
        one, two = _operand(left), _operand(right)
        if one is None or two is None or (isinstance(one, Literal) and isinstance(two, Literal)):
            return self._opaque(tree)
        return Compare(op, one, two, self._nan)

    def _if_else(self, test: Predicate, then: Predicate, otherwise: Predicate) -> Predicate:
        # the test is never NULL
        return (test & then) | (Not(test) & otherwise)

    def _of_field(self, call: Call, ref: Ref) -> Predicate:
        options = call.options.as_py() if call.options is not None and call.name != "is_in" else {}
        match call.name:
            case "is_valid":
                return Not(IsNull(ref))
            case "is_null":
                return Or((IsNull(ref), IsNan(ref))) if options.get("nan_is_null") else IsNull(ref)
            case "is_nan":  # NULL for NULL, where SQL's is FALSE
                return IsNan(ref) & Or((Not(IsNull(ref)), Constant(None)))
            case "starts_with" if not options["ignore_case"]:
                return _starts_with(ref, options["pattern"])
            case "is_in":
                return self._is_in(ref, call)
            case _:
                return self._opaque(call)

    def _is_in(self, ref: Ref, call: Call) -> Predicate:
        """Never NULL: a NULL is in a list that has one (MATCH), or is not (SKIP)."""
        values = [literal_of(scalar) for scalar in _values(call.options["value_set"])]
        behaviour = call.options["null_matching_behavior"].as_py()
        if any(value is None for value in values) or behaviour not in {_MATCH, _SKIP}:
            return self._opaque(call)
        known = [value for value in values if value is not None and value.value is not None]
        # Arrow looks values up by their bits: NaN is found, whatever the rule
        found = IsTrue(IsIn(ref, tuple(known), NanRule.SPARK))
        has_null = len(known) < len(values) and behaviour == _MATCH
        return Or((IsNull(ref), found)) if has_null else found

    def _opaque(self, tree: Tree) -> Opaque:
        return Opaque(_text(tree), tuple(sorted(_paths(tree) or ())), _UNREADABLE)


def _text(tree: Tree) -> str:
    match tree:
        case FieldRef(path):
            return path_text(path)
        case Value(scalar):
            return str(scalar)
        case Call(name, arguments):
            return f"{name}({', '.join(map(_text, arguments))})"


def _values(value_set: Any) -> Any:
    """The list as scalars; a chunked or a plain array, inside the scalar of a list."""
    return value_set.values if isinstance(value_set, pa.ListScalar) else value_set


def _operand(tree: Tree) -> Ref | Literal | None:
    match tree:
        case FieldRef(path) if path:
            return Ref(path)
        case Value(scalar):
            return literal_of(scalar)
        case _:
            return None


def _starts_with(ref: Ref, pattern: str | bytes) -> Predicate:
    text = pattern.decode("utf-8", "replace") if isinstance(pattern, bytes) else pattern
    if "\ufffd" in text:
        return Opaque("starts_with", (ref.path,), "its prefix is no text")
    return StartsWith(ref, text)


def with_nan_on_top(expression: Any, schema: StructType) -> Any:
    """The expression under the rule that NaN is above every number, so that Arrow filters by it.

    `d > 2` becomes `d > 2 OR is_nan(d)`, for every float field that is compared with a value.
    """
    taken = take_apart(expression)
    if taken is None:
        return expression
    floats = {leaf.path for leaf in leaves(schema) if is_float(leaf.type)}
    changed = _nan_on_top(taken.tree, floats)
    return expression if changed is taken.tree else Taken.expression(taken, changed)


def _nan_on_top(tree: Tree, floats: set[FieldPath]) -> Tree:
    if not isinstance(tree, Call):
        return tree
    match tree.name, tree.arguments:
        case ("greater" | "greater_equal", (FieldRef(path) as column, Value())) if path in floats:
            return _or_nan(tree, column)
        case ("less" | "less_equal", (Value(), FieldRef(path) as column)) if path in floats:
            return _or_nan(tree, column)
    inner = tuple(_nan_on_top(argument, floats) for argument in tree.arguments)
    if all(new is old for new, old in zip(inner, tree.arguments, strict=True)):
        return tree
    return Call(tree.name, inner, tree.options, tree.options_pair)


def _or_nan(comparison: Call, column: FieldRef) -> Call:
    return Call("or_kleene", (comparison, Call("is_nan", (column,), None)), None)
