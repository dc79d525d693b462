"""Faults and look-alikes of the rules 9xx: communication."""

from __future__ import annotations

from faults.table import faults

COMMUNICATION = (
    faults(
        "AWP901",
        "layer",
        """
        for part_{u} in {x}.unbind(0):
            torch.distributed.all_reduce(part_{u})
        """,
        """
        torch.distributed.all_reduce({x})
        """,
    ),
    faults(
        "AWP902",
        "layer",
        """
        flags_{u} = [None]
        torch.distributed.broadcast_object_list(flags_{u}, src=0)
        ---
        torch.distributed.barrier()
        """,
        """
        torch.distributed.broadcast({x}, src=0)
        ---
        rank_{u} = torch.distributed.get_rank()
        {x} = {x} * float(rank_{u} >= 0)
        """,
    ),
)
