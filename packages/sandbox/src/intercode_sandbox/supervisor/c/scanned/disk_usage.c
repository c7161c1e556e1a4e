/* Measures how much space a container's own files take: all differences from the start, and
   deleted files that are still open or mapped. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 512  /* bytes per block, as stat(2) counts them */
#define PF_EXITING 4  /* a flag of a thread in /proc/PID/stat */
#define MAPS_PROCESSES 64  /* with more processes, mappings are not read */
#define MAPS_MILLISECONDS 100  /* after that, no further process's mappings are read */

/* A file that may have several names, descriptors or mappings, and is counted once. */
struct file_use { uint64_t inode; long long bytes; bool mapped; };

struct file_uses { struct file_use *items; size_t count, capacity; };

static void add_use(struct file_uses *uses, uint64_t inode, long long bytes, bool mapped) {
    uses->items = ensure_capacity(uses->items, uses->count, &uses->capacity, sizeof *uses->items);
    uses->items[uses->count++] = (struct file_use){inode, bytes, mapped};
}

static int by_inode(const void *a, const void *b) {
    const struct file_use *one = a, *two = b;
    if (one->inode != two->inode) return one->inode > two->inode ? 1 : -1;
    return one->mapped - two->mapped;
}

static void sum_uses(struct usage *out, struct file_uses *uses) {
    if (uses->count) qsort(uses->items, uses->count, sizeof *uses->items, by_inode);
    for (size_t i = 0; i < uses->count; i++) {
        if (i && uses->items[i].inode == uses->items[i - 1].inode) continue;
        out->bytes += uses->items[i].bytes;
        out->files++;
    }
    free(uses->items);
}

static void read_proc(const char *path, char *text, size_t capacity) {
    int fd = open_proc(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, text, capacity - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
}

/* Return whether a thread has ended or is about to. It holds no files then, and its directory
   in /proc may be unreadable. */
static bool is_thread_ending(const char *thread) {
    char path[80], line[512], *position, state;
    unsigned flags;
    snprintf(path, sizeof path, "%s/stat", thread);
    read_proc(path, line, sizeof line);
    if (!(position = strrchr(line, ')'))
        || sscanf(position + 1, " %c %*s %*s %*s %*s %*s %u", &state, &flags) != 2)
        return true;
    return state == 'Z' || state == 'X' || flags & PF_EXITING;
}

/* Return whether descriptors are being passed through a socket, where they cannot be inspected. */
static bool has_fds_in_flight(const char *thread, const char *socket) {
    char path[100], text[512], *position;
    snprintf(path, sizeof path, "%s/fdinfo/%.10s", thread, socket);
    read_proc(path, text, sizeof text);
    return (position = strstr(text, "scm_fds:")) && atoi(position + strlen("scm_fds:")) > 0;
}

static void add_open_files(struct usage *out, struct file_uses *uses, const char *thread) {
    char path[80];
    struct names names;
    struct file_stat info;
    snprintf(path, sizeof path, "%s/fd", thread);
    int fd = open_proc(path, DIRECTORY);
    if (fd < 0) {
        if (errno == EACCES && !is_thread_ending(thread)) out->incomplete = true;
        return;
    }
    if (!list_names(fd, &names)) {
        for (size_t i = 0; i < names.count; i++) {
            if (stat_target(fd, names.name[i], &info)) continue;
            if (S_ISSOCK(info.entry.mode) && has_fds_in_flight(thread, names.name[i]))
                out->incomplete = true;
            if (!info.other_mount && !info.links && S_ISREG(info.entry.mode))
                add_use(uses, info.inode, (long long)info.blocks * BLOCK, false);
        }
    }
    free_names(&names);
    close(fd);
}

/* Count deleted files that are only mapped by their mapped size, because nothing else is known.
   Return false if the thread no longer has memory. */
static bool add_mapped_files(struct file_uses *uses, const char *thread) {
    char path[80], *line = NULL;
    size_t capacity = 0;
    unsigned long from, to;
    unsigned long long inode;
    int at = 0;
    bool has_memory = false;
    snprintf(path, sizeof path, "%s/maps", thread);
    int fd = open_proc(path, O_RDONLY);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) return false;
    while (getline(&line, &capacity, file) > 0) {
        has_memory = true;
        if (!strstr(line, " (deleted)\n")) continue;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %llu %n", &from, &to, &inode, &at) < 3) continue;
        const char *name = line + at;
        if (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/dev/", 5)
            || !strncmp(name, "/SYSV", 5))
            continue;
        add_use(uses, inode, (long long)(to - from), true);
    }
    free(line);
    fclose(file);
    return has_memory;
}

/* Count the files that a process has open and, if `maps`, those that it maps. Each thread may have its
   own descriptors, and the first may have ended. */
static void add_process_files(struct usage *out, struct file_uses *uses, const char *number,
                              bool maps) {
    char path[80];
    struct names threads;
    snprintf(path, sizeof path, "%.10s/task", number);
    int task = open_proc(path, DIRECTORY);
    if (task < 0) return;
    if (!list_names(task, &threads)) {
        for (size_t i = 0; i < threads.count; i++) {
            snprintf(path, sizeof path, "%.10s/task/%.10s", number, threads.name[i]);
            add_open_files(out, uses, path);
            if (maps && add_mapped_files(uses, path)) maps = false;  /* the same for all threads */
        }
    }
    free_names(&threads);
    close(task);
}

static bool is_command(const char *name) {
    bool shows_others = sandbox.in_chroot || sandbox.in_domain;
    if (!isdigit((unsigned char)*name) || !strcmp(name, "1")) return false;
    return !shows_others || (atoi(name) != getpid() && !kill(atoi(name), 0));
}

/* Count deleted files. To read the mappings of a process takes as long as it holds their lock, which
   it does while it forks: seconds in a crowd that starves it. Where not all can be read, the
   measurement is incomplete. */
static int add_deleted_files(struct usage *out, struct file_uses *uses) {
    struct names names;
    size_t count = 0;
    int proc = open_proc("", DIRECTORY);
    if (proc < 0) return fail("/proc");
    int result = list_names(proc, &names);
    for (size_t i = 0; !result && i < names.count; i++) {
        char *name = names.name[i];
        if (!is_command(name)) continue;
        names.name[i] = names.name[count];
        names.name[count++] = name;
    }
    long long end = milliseconds() + MAPS_MILLISECONDS;
    for (size_t i = 0; !result && i < count; i++) {
        bool maps = count <= MAPS_PROCESSES && milliseconds() < end;
        if (!maps) out->incomplete = true;
        add_process_files(out, uses, names.name[i], maps);
    }
    free_names(&names);
    close(proc);
    return result;
}

int measure_usage(struct usage *out) {
    struct differences differences;
    struct file_uses uses = {0};
    *out = (struct usage){0};
    int result = scan(&differences, true);
    restore_modes();
    for (size_t i = 0; !result && i < differences.count; i++) {
        const struct difference *d = &differences.items[i];
        long long bytes = (long long)d->info.blocks * BLOCK;
        if (d->kind == DELETED) continue;
        if (d->info.links > 1 && !S_ISDIR(d->info.entry.mode)) {
            add_use(&uses, d->info.inode, bytes, false);
        } else {
            out->bytes += bytes;
            out->files++;
        }
    }
    if (!result) {
        out->incomplete = differences.incomplete;
        result = add_deleted_files(out, &uses);
    }
    sum_uses(out, &uses);
    free_differences(&differences);
    return result;
}
