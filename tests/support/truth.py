"""An evaluator of bound conditions on one row, in the plainest Python: what the pruner is judged by.

It shares no code with the pruner. A row is a mapping of paths to physical values, None for NULL.
"""

import math

from indextables.core.predicate.nodes import (
    And,
    BoolRef,
    Compare,
    Constant,
    IsIn,
    IsNan,
    IsNull,
    IsTrue,
    Literal,
    NanRule,
    Not,
    Or,
    StartsWith,
)


def truth(p, row):
    """TRUE, FALSE or NULL (None) as SQL has it, for one row."""
    match p:
        case Constant(value):
            return value
        case Not(child):
            inner = truth(child, row)
            return None if inner is None else not inner
        case IsTrue(child):
            return truth(child, row) is True
        case And(children):
            found = [truth(c, row) for c in children]
            return False if False in found else None if None in found else True
        case Or(children):
            found = [truth(c, row) for c in children]
            return True if True in found else None if None in found else False
        case IsNull(ref):
            return row[ref.path] is None
        case IsNan(ref):
            return _is_nan(row[ref.path])
        case BoolRef(ref):
            return row[ref.path]
        case StartsWith(ref, prefix):
            value = row[ref.path]
            return None if value is None else value.startswith(prefix)
        case IsIn(ref, values, nan):
            if not values:
                return False
            return truth(Or(tuple(Compare("=", ref, v, nan) for v in values)), row)
        case Compare(op, left, right, nan):
            return _compare(op, _value(left, row), _value(right, row), nan)
    raise AssertionError(p)


def _value(operand, row):
    return operand.value if isinstance(operand, Literal) else row[operand.path]


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def _compare(op, a, b, nan):
    if op == "<=>":
        if a is None or b is None:
            return a is b
        return _compare("=", a, b, nan)
    if a is None or b is None:
        return None
    if nan is NanRule.IEEE and (_is_nan(a) or _is_nan(b)):
        return op == "<>"
    a, b = _key(a), _key(b)
    return {
        "=": a == b,
        "<>": a != b,
        "<": a < b,
        "<=": a <= b,
        ">": a > b,
        ">=": a >= b,
    }[op]


def _key(value):
    """What Spark's order of values compares by: NaN above all numbers, text by its UTF-8 bytes."""
    if isinstance(value, int | float):
        return (1, 0.0) if _is_nan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value
