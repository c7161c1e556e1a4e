/* What the keeper of a container has besides: it can lay out nothing, so it knows what was there. */

#ifndef CONTAINER_H
#define CONTAINER_H

#include "supervisor.h"

/* ---- index.c: what a container's files were at its start ---- */
#define NOWHERE UINT32_MAX
#define NOT_YET (UINT32_MAX - 1)

struct entry {
    uint64_t mark;             /* of inode, kind, mode and time of change; 0 is never met */
    int64_t modified;          /* in nanoseconds */
    const char *name;
    uint32_t inner;            /* its group, NOT_YET taken in, or NOWHERE for no directory */
    uint32_t size;             /* at most UINT32_MAX */
    uint16_t mode;
    bool reopened;             /* something in it was changed and put back: its mark tells no more */
};

struct siblings { uint32_t first, count; };  /* the entries of one directory, by name */

struct index {
    struct entry *entries;     /* the first is the root */
    struct siblings *groups;
    size_t count, room, groups_count, groups_room;
    bool layered;              /* a directory's mark tells of all that is below it */
};

struct look { struct entry found; int64_t changed; uint64_t inode, links, blocks; long long size; bool foreign; };

extern struct index index_of_box;

int look(int fd, const char *name, struct look *out);
int look_behind(int fd, const char *name, struct look *out);
int make_index(int root, bool trees);
int take_in(uint32_t number, int fd, const char *path);
void let_time_pass(int64_t then);

/* ---- pristine.c: the trees that it was made of ---- */
void set_pristine(const int *fds, size_t count);
int open_pristine(const char *path, int flags);
int stat_pristine(const char *directory, const char *name, struct stat *out);
int names_pristine(const char *path, struct names *out);

/* ---- scan.c: what differs from it ---- */
enum how { GONE, CHANGED, NEW };

struct difference {
    char *path;                /* without the first slash; "" is the root */
    uint32_t entry, parent;    /* in the index, or NOWHERE */
    enum how how;
    bool replaced;             /* it is, or was, no directory */
    bool below;                /* something above it is new or replaced */
    bool deep;                 /* what it holds was not looked at */
    struct look now;
};

struct differences { struct difference *all; size_t count, room; bool unread; };

int scan(struct differences *out);
void forget_differences(struct differences *list);
int write_differences(struct text *out, bool digests, bool paths_only);
int write_touched(struct text *out);

/* ---- locks.c: files that their owner may not read ---- */
int open_exact(int root, const char *path, int flags, mode_t mode);
int open_unlocked(int root, const char *path, int flags);
void unlock_way(int root, const char *path, bool writes);
void remember_lock(int root, const char *path, mode_t mode);
mode_t locked_mode(int root, const char *path, mode_t now);
void lock_again(void);
void forget_locks(void);

/* ---- restoring.c, leftovers.c ---- */
int put_back(void);
int copy_paths(int source, const struct json *paths);
int clear_leftovers(void);

/* ---- usage.c, disk.c: how much a container's files take up ---- */
struct usage { long long bytes, files; bool unknown; };  /* unknown: some are kept from us */

int measure(struct usage *out);
int write_size(struct text *out);
int until_next_look(void);             /* in milliseconds; -1: for ever */
void look_at_disk(void);
const char *last_breach(void);         /* since it was last asked: "", "disk" or "inodes" */
void something_started(void);

/* ---- container.c: PID 1 of a container ---- */
#define NOT_OURS 1

int asked_of_container(const char *what, const struct message *m, struct text *out, int *given);
void files_for_commands(bool only);
void bound_files(pid_t pid);
void end_container(void) __attribute__((noreturn));

#endif
