"""Evaluation and pools on several machines, by Ray. Needs the extra ``ray``.

Environments run on the nodes of a cluster, beside their sandboxes. Agents, models, limits and the
files of a run stay in the driver. ``intercode eval --set runner=ray`` uses ``ray_runner``;
``RayPool`` is the pool for trainers.

Each node has a few host processes with many environments each (``env_host``). The driver starts
them and assigns episodes to them (``host_manager``). It uses a ``RemoteEnv`` for each episode
(``remote_env``), and sends the files that a node lacks (``environment_spec``, ``transfer``).
"""

from __future__ import annotations

from intercode.environments.ray.ray_pool import RayPool

__all__ = ["RayPool"]
