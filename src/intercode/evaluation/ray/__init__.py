"""More than one machine, by Ray: environments live on the nodes, beside their sandboxes; agents,
models, limits and the run's files stay with the driver.

``intercode eval --runner ray`` plays a run so (running.py). ``RayPool`` (pool.py) is the pool for
trainers over nodes. On each node a few processes (host.py) hold many environments each; the driver
knows who has room (hosts.py); an environment of the driver's (far.py) asks one of them. What nodes
lack is sent by content (kit.py, shipping.py). Needs the extra ``ray``, loaded when it is used.
"""

from __future__ import annotations

from intercode.evaluation.ray.ray_pool import RayPool

__all__ = ["RayPool"]
