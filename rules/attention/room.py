"""A tensor that grows without being copied: what is appended goes into spare room behind what is there."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.rules.common import argument, short
from awp_lint.rules.edits import above_definition, fresh_name, pure_chain
from awp_lint.rules.nodemap import Definition

#: The room is remembered with the tensor that fills it. Where it was sliced, reordered or appended to before, there is
#: none that is free, and everything is copied as ``cat`` would. It is as long as a power of two, so that tensors of one
#: length have the same strides whatever they began with: cuDNN keeps its plans of attention by shape and stride.
_HELPER = '''\
def {name}(past, new, dim):
    """`torch.cat((past, new), dim)`, but `new` goes into spare room behind `past` where there is some."""
    plain = past.dim() == new.dim() and past.dtype == new.dtype and past.device == new.device
    if not plain or past.requires_grad or new.requires_grad:
        return {cat}((past, new), dim)
    length, total = past.shape[dim], past.shape[dim] + new.shape[dim]
    whole = list(new.shape)
    whole[dim] = length
    if list(past.shape) != whole:
        return {cat}((past, new), dim)
    room, used = getattr(past, "_room", ([None], -1))
    if used != length or len(room) != 2 or room[1] != length or room[0].shape[dim] < total:
        whole[dim] = 1 << total.bit_length()
        room = [past.new_empty(whole), total]
        room[0].narrow(dim, 0, length).copy_(past)
    room[0].narrow(dim, length, total - length).copy_(new)
    room[1] = total
    joined = room[0].narrow(dim, 0, total)
    joined._room = room, total
    return joined


'''


def appended(call: ast.Call, definition: Definition) -> Fix | None:
    """The rewrite of ``torch.cat((past, new), dim=d)``; None for a spelling that is not just that."""
    parts, dim = call.args[0] if call.args else None, argument(call, 1, "dim")
    if not isinstance(parts, ast.List | ast.Tuple) or len(parts.elts) != 2 or dim is None:
        return None
    if len(call.args) + len(call.keywords) != 2 or not (pure_chain(parts.elts[0]) or _item(parts.elts[0])):
        return None
    place = above_definition(definition)
    if place is None:
        return None
    name = fresh_name("_appended", definition, place)
    code = _HELPER.format(name=name, cat=definition.torch_name("torch.cat"))
    if definition.source.newline != "\n":
        code = code.replace("\n", definition.source.newline)
    old, new = (definition.text(part) for part in parts.elts)
    return Fix(
        title=f"append `{short(parts.elts[1], 30)}` into spare room behind `{short(parts.elts[0], 30)}`",
        safety=Safety.UNSAFE,
        edits=(
            Edit(place, place, code),
            definition.replace(call, f"{name}({old}, {new}, {definition.text(dim)})"),
        ),
        effects=(Effect.MEMORY, Effect.ALIASING),
        requires=(
            "nothing writes into the result, or needs it contiguous",
            "it is not compiled or captured",
            "the cache is large: of 4 MB and less a layer `torch.cat` makes the copy sooner than this is called",
        ),
    )


def _item(node: ast.expr) -> bool:
    """``past[0]``: an item of a chain of names."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and pure_chain(node.value)
