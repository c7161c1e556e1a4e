"""Starts the programs of sandboxes and says what they change: the part that back ends share.

The *launcher* (``runtime``) has few modules and one thread. Started by root, it drops all rights,
or all but five capabilities. It installs the seccomp filter, which all supervisors inherit, and
ends when its owner closes the connection. The *template* has executed the supervisor's program and
waits; each *supervisor* (``c``, compiled by ``build``) is forked from it. Two prepared ones always
wait, with namespaces, PID 1, /proc, /dev and capabilities; after three equal requests the next one
is mounted ahead. *PID 1* of a sandbox is a fork of the supervisor without capabilities. It executes
nothing of the sandbox, and its files in /proc belong to nobody there.

What the kernel enforces:

- The seccomp filter allows a list of system calls (``runtime/syscall_numbers.py``). It has a key, a
  random number of 64 bits: calls that change mounts and namespaces succeed only with the key in a
  register, so that a supervisor can seal or recycle a running sandbox and its programs cannot.
- Landlock, from Linux 6.12 on, confines abstract sockets and signals. Mounts protect files.
- What the kernel counts or shares is bounded or separated for each sandbox: inotify, pending
  signals, timers, terminals, message queues, semaphores, pipes. Programs of the machine are shown
  through overlays, so locks and watches on them stay within the sandbox. Pages of shared files are
  in memory once: two sandboxes of one image can signal each other through them.
- If root starts the launcher, each sandbox has a user id from a range that launchers lock
  (``runtime/user_ids.py``); idmapped mounts show layers as its own (Linux 5.19, file systems in
  memory 6.3). All others share one id, and with it the budgets for pipes and inotify instances.
- Sandboxes with several users have 65,536 ids from a launcher of their own; a second user namespace
  around that of the sandbox bounds what the kernel counts for all of them together.
- Each sandbox has a control group where they can be created. The supervisor stays outside the one
  that limits memory, so that running out of memory cannot end it. Elsewhere a watchdog thread of
  the owner adds up the memory.
"""
