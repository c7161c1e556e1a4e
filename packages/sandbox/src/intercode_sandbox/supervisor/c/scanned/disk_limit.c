/* Enforces the limits on the size and number of a container's files, which engines do not. It
   checks the free space of the file system several times a second, and measures the files once more
   space is gone than the container may still use. Space that other users fill is not counted. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#define ACTIVE_INTERVAL 100  /* milliseconds between checks: after a recent request, and later */
#define IDLE_INTERVAL 500
#define ACTIVE_TIME 10000
#define URGENT_INTERVAL 200  /* minimum milliseconds between measurements */
#define REGULAR_INTERVAL 2000
#define URGENT_COST 4  /* the same, in multiples of the duration of a measurement */
#define REGULAR_COST 20
#define REPEAT_TIME 1500  /* a second kill within this time includes the children */
#define KILL_WAIT 500  /* wait in milliseconds for killed processes */
#define MIN_BYTES (1LL << 20)
#define MIN_FILES 50  /* smaller changes are ignored */
#define FAST_MEASUREMENT 5  /* a measurement this short is done after every action */

struct space { long long bytes, files; };

static struct {
    struct space free_space;  /* in the file system at the last measurement */
    struct usage usage;
    long long known_usage, known_free;  /* bytes, at the last complete measurement */
    long long measured_at, measure_time, active_at, next_check, warned_at;  /* milliseconds */
    bool started;
    const char *exceeded;
} disk = {.warned_at = -REPEAT_TIME, .exceeded = ""};

static struct space get_free_space(void) {
    struct statvfs info;
    if (fstatvfs(sandbox.root, &info)) return disk.free_space;
    return (struct space){(long long)(info.f_bfree * info.f_frsize), (long long)info.f_ffree};
}

static long long get_limit(const char *name) {
    return json_number(json_get(sandbox.spec, "limits"), name);
}

static long long max_of(long long a, long long b) {
    return a > b ? a : b;
}

void start_disk_checks(void) {
    disk.active_at = milliseconds();
    if (disk.started) return;
    disk.started = true;
    disk.free_space = get_free_space();
    disk.known_free = disk.free_space.bytes;
}

int disk_check_timeout(void) {
    if (!disk.started) return -1;
    return (int)max_of(disk.next_check - milliseconds(), 0);
}

/* Kill the processes that the supervisor's children started, so that a shell survives and can
   report it; with `kill_children` also the children. Waits until the processes have ended. */
static void kill_processes(bool kill_children) {
    const struct timespec moment = {0, 1000000};
    struct json list = {.kind = LIST}, *excluded = calloc(sandbox.count + 1, sizeof *excluded);
    if (!excluded) abort();
    for (size_t i = 0; i < sandbox.count; i++) {
        excluded[i] = (struct json){.kind = NUMBER, .number = sandbox.children[i].pid};
        excluded[i].next = i + 1 < sandbox.count ? &excluded[i + 1] : NULL;
    }
    list.first = sandbox.count ? excluded : NULL;
    kill_since(0, kill_children ? NULL : &list, &sandbox.isolation);
    free(excluded);
    for (int i = 0; i < KILL_WAIT; i++) {
        struct text names = {0};
        size_t count = kill_children ? list_other_processes(&names, NULL, 0)
            : list_background(&names);
        free(names.bytes);
        if (!count || nanosleep(&moment, NULL)) return;
    }
}

/* Kill processes if the last measurement exceeds a limit and usage has grown. Children are only
   killed during a command (`during_command`), so that an action does not lose its shell after
   it is over. */
static void enforce_limits(const struct usage *before, bool during_command) {
    bool disk_full = disk.usage.bytes > get_limit("disk");
    bool grown = disk.usage.bytes > before->bytes || disk.usage.files > before->files;
    if (!grown || (!disk_full && disk.usage.files <= get_limit("inodes"))) return;
    disk.exceeded = disk_full ? "disk" : "inodes";
    kill_processes(during_command && disk.measured_at - disk.warned_at < REPEAT_TIME);
    disk.warned_at = disk.measured_at;
    disk.free_space = get_free_space();
    measure_usage(&disk.usage);  /* data written before the kill is not growth */
}

/* If some files cannot be inspected, attribute all lost space to the container once it exceeds the
   limit. */
static void estimate_hidden_usage(void) {
    long long estimate = disk.known_usage + disk.known_free - disk.free_space.bytes;
    if (!disk.usage.incomplete) {
        disk.known_usage = disk.usage.bytes;
        disk.known_free = disk.free_space.bytes;
    } else if (estimate > get_limit("disk")) {
        disk.usage.bytes = estimate;
    }
}

static int measure_and_enforce(bool during_command) {
    struct usage before = disk.usage;
    long long begun = milliseconds();
    disk.free_space = get_free_space();
    int result = measure_usage(&disk.usage);
    disk.measured_at = milliseconds();
    disk.measure_time = disk.measured_at - begun;
    if (result) return result;
    estimate_hidden_usage();
    enforce_limits(&before, during_command);
    return 0;
}

int write_size(struct text *out) {
    if (measure_and_enforce(false)) return -1;
    long long bytes = get_limit("disk") - disk.usage.bytes,
        files = get_limit("inodes") - disk.usage.files;
    if (disk.free_space.bytes < bytes) bytes = disk.free_space.bytes;
    append_format(out,
                  ", \"bytes\": %lld, \"files\": %lld, \"bytes_left\": %lld, \"files_left\": %lld",
                  disk.usage.bytes, disk.usage.files, max_of(bytes, 0), max_of(files, 0));
    if (!sandbox.in_chroot) append_shared_memory(out);
    return 0;
}

/* Return whether more space is gone since the last measurement than the container may still use. */
static bool is_urgent(struct space gone) {
    return gone.bytes > max_of(get_limit("disk") - disk.usage.bytes, MIN_BYTES)
        || gone.files > max_of(get_limit("inodes") - disk.usage.files, 0);
}

static struct space space_used(void) {
    struct space free_space = get_free_space();
    return (struct space){disk.free_space.bytes - free_space.bytes,
                          disk.free_space.files - free_space.files};
}

void check_disk(void) {
    long long now = milliseconds();
    if (!disk.started || now < disk.next_check) return;
    struct space lost = space_used();
    long long bytes = lost.bytes, files = lost.files;
    bool urgent = is_urgent(lost);
    bool due = (llabs(bytes) > MIN_BYTES || files) && now - disk.active_at < ACTIVE_TIME;
    long long waited = now - disk.measured_at;
    if ((urgent && waited > max_of(URGENT_INTERVAL, URGENT_COST * disk.measure_time))
        || (due && waited > max_of(REGULAR_INTERVAL, REGULAR_COST * disk.measure_time)))
        measure_and_enforce(true);  /* on failure the next check tries again */
    disk.next_check = milliseconds() + (now - disk.active_at < ACTIVE_TIME ? ACTIVE_INTERVAL
                                        : IDLE_INTERVAL);
}

/* Return the limit that was exceeded since the last call, which the owner makes after each
   action. It includes what was written since the last check, and allows the next action a first
   kill without its children. */
const char *take_storage_limit(void) {
    struct space lost = space_used();
    bool changed = llabs(lost.bytes) > MIN_BYTES || llabs(lost.files) > MIN_FILES;
    bool cheap = disk.measure_time <= FAST_MEASUREMENT
        || milliseconds() - disk.measured_at > REGULAR_COST * disk.measure_time;
    if (disk.started && (is_urgent(lost) || (changed && cheap))) measure_and_enforce(false);
    const char *exceeded = disk.exceeded;
    disk.exceeded = "";
    disk.warned_at = -REPEAT_TIME;
    return exceeded;
}
