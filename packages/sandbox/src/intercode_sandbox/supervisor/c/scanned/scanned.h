/* Declarations for supervisors that cannot mount anything: those of containers, below a changed root
   directory, and with Landlock. They record the files at the start, and scan and restore them. */

#ifndef SCANNED_H
#define SCANNED_H

#include "supervisor.h"

/* descriptors that the supervisor may have beyond the limit of a command */
#define EXTRA_DESCRIPTORS (1 << 20)

/* ---- container/container.c ---- */
int watch_children(void);
int install_filter(const char *digits);

/* ---- file_index.c: the files at the start ---- */
#define NO_ENTRY UINT32_MAX
#define NOT_INDEXED (UINT32_MAX - 1)

struct entry {
    uint64_t fingerprint;  /* hash of inode, kind, mode and change time; 0 never occurs */
    int64_t mtime_ns;
    uint64_t shape;  /* of a directory: hash of its size, blocks and links; 0: unknown */
    const char *name;
    uint32_t children;  /* index of its range, NOT_INDEXED, or NO_ENTRY if it is not a directory */
    uint32_t size;  /* at most UINT32_MAX */
    uint16_t mode;
    /* a change in it was rolled back, so its fingerprint does not cover its children */
    bool always_visit;
    /* below a changed root: a directory of root, in which nothing can change, and whose entries are
       not recorded; it can be moved, and another put in its place */
    bool immutable;
    bool of_root;  /* the same, or an empty one, whose entries are recorded: there are none */
};

struct child_range { uint32_t first, count; };  /* the entries of one directory, by name */

struct index {
    struct entry *entries;  /* the first is the root */
    struct child_range *ranges;
    size_t count, capacity, range_count, range_capacity;
    /* a directory changes its fingerprint whenever anything below it changes */
    bool covers_subtree;
};

struct file_stat {
    struct entry entry;
    int64_t ctime_ns;
    uint64_t inode, links, blocks;
    long long size;
    bool other_mount;
    bool shared;  /* commands cannot change it */
};

extern struct index file_index;

int stat_entry(int fd, const char *name, struct file_stat *out);
int stat_target(int fd, const char *name, struct file_stat *out);
int build_index(int root, bool trees);
int index_directory(uint32_t number, int fd, const char *path);
void wait_clock_tick(int64_t then);

/* ---- image_trees.c: the directories of which the image was made ---- */
void set_image_trees(const int *fds, size_t count);
int open_in_image(const char *path, int flags);
int stat_in_image(const char *directory, const char *name, struct stat *out);
int list_in_image(const char *path, struct names *out);
bool is_merged(const char *path);

/* ---- scan.c: differences from the start ---- */
enum change_kind { DELETED, CHANGED, NEW };

struct difference {
    char *path;  /* without the leading slash; "" is the root; NULL if it is only measured */
    uint32_t entry, parent;  /* in the index, or NO_ENTRY */
    enum change_kind kind;
    bool replaced;  /* it is not, or was not, a directory */
    bool under_replaced;  /* a parent is new or replaced */
    bool too_deep;  /* its content was not scanned */
    bool other_shape;  /* a restored directory that shows another size, or other blocks or links */
    struct file_stat info;
};

struct differences {
    struct difference *items;
    size_t count, capacity;
    long long path_bytes;
    bool incomplete, measures_only;
};

int scan(struct differences *out, bool measures_only);
void free_differences(struct differences *list);
int write_differences(struct text *out, bool digests, bool paths_only);
int write_touched_paths(struct text *out);

/* ---- permissions.c: files that their owner may not read ---- */
int open_exact(int root, const char *path, int flags, mode_t mode);
int open_granted(int root, const char *path, int flags);
void grant_path_access(int root, const char *path, bool writes);
void grant_parent_access(int root, const char *path);
void record_mode(int root, const char *path, mode_t mode);
mode_t original_mode(int root, const char *path, mode_t info);
void restore_modes(void);
void discard_modes(void);

/* ---- chroot/guard.c ---- */
/* Open a path below a directory of which this process may not read everything. */
int open_as_guard(int directory, const char *path, int flags);
/* Remove a directory of the sandbox that holds files of root. */
int remove_as_guard(const char *path);
/* Show a directory of this machine again that was moved or removed. */
int show_again_as_guard(const char *path);

/* ---- chroot/enter.c ---- */
int write_script(const struct message *m, int *result_fd);
void remove_script(void);
bool is_outside_listing(const char *path);

/* ---- rollback.c, container/ipc_cleanup.c ---- */
int roll_back(bool recycles);
int copy_paths(int source, const struct json *paths);
int clear_ipc(void);

/* ---- disk_usage.c, disk_limit.c ---- */
/* incomplete: some files could not be inspected */
struct usage { long long bytes, files; bool incomplete; };

int measure_usage(struct usage *out);
int write_size(struct text *out);
int disk_check_timeout(void);  /* in milliseconds; -1: never */
void check_disk(void);
const char *take_storage_limit(void);  /* since the last call: "", "disk" or "inodes" */
void start_disk_checks(void);

/* ---- requests.c ---- */
#define NOT_HANDLED 1

int handle_scanned_request(const char *operation, const struct message *m, struct text *out,
                             int *result_fd);
void set_command_file_limit(bool only);
void record_priority(void);
void limit_child_files(pid_t pid);
void end_container(void) __attribute__((noreturn));

#endif
