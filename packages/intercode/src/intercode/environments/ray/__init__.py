"""Environments on several machines, by Ray. Needs the extra ``ray``.

They run on the nodes of a cluster, beside their sandboxes. Agents, models, limits and the files of
a run stay in the driver. Evaluation and ``Pool`` use them by ``environments/runners.py``.

Each node has a few host processes with many environments each (``env_host``). The driver starts
them and assigns episodes to them (``host_manager``). It uses a ``NodeEnv`` for each episode
(``node_env``), and sends the files that a node lacks (``node_files``).
"""
