/* Declarations for sandboxes without root and without namespaces, which lie in a directory of the
   machine.

   All processes have the user that opened the sandbox. Landlock tells them apart by domains, each
   inside the one before: that of the guard, that of the supervisor, and one for each command. A
   process can only signal and trace processes of its own domain and of those inside it. Only the
   domains of commands have rules for files. The guard started the supervisor, ends the processes and
   removes the directory. */

#ifndef LANDLOCK_H
#define LANDLOCK_H

#include "scanned/scanned.h"

/* ---- rules.c ---- */
int build_command_rules(const struct json *spec, int tree);
int enter_own_domain(void);

/* ---- attributes.c ---- */
int install_attribute_filter(void);
void answer_attribute_call(int listener, pid_t supervisor);

#endif
