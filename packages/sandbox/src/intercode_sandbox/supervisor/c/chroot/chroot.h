/* Declarations for sandboxes below a changed root directory: for root of a container that may neither
   mount nor make namespaces.

   Each sandbox has two user ids that no other sandbox uses. Commands have the first one. The
   supervisor has the second one as its real and saved id, and the first one as its effective id: it
   has the commands' rights to files and may signal them, and they may neither signal nor trace it.
   Neither of them has capabilities. A guard, which remains root, made the files, ends the processes
   and removes the files. */

#ifndef CHROOT_H
#define CHROOT_H

#include "scanned/scanned.h"

/* ---- tree.c ---- */
int build_tree(int root, int retained, const struct json *spec, const int *layers, size_t count,
               const int *programs);
int show_again(int root, int retained, const struct json *spec, const char *path);
void retain_shared(int root, int retained, const struct json *spec);

/* ---- enter.c ---- */
void supervise_chroot(int root, const int *layers, size_t count) __attribute__((noreturn));

/* ---- guard.c ---- */
extern int guard_link;  /* the supervisor's connection to its guard */

#endif
