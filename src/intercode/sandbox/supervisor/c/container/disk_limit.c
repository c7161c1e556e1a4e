/* Holds a container to what its files may take up. Nothing in its engine can, so its keeper looks at
   the file system some times a second, and at the files once that has lost more than is left to
   them. What it cannot tell apart from other users' files it leaves. */

#define _GNU_SOURCE
#include "container/container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#define OFTEN 100              /* milliseconds between looks, while it was lately asked for something */
#define SELDOM 500
#define LATELY 10000
#define SOON 200               /* at least, between measurements */
#define LATER 2000
#define CHEAP 4                /* times what a measurement takes */
#define DEAR 20
#define AT_ONCE 1500           /* after a warning: it was no use */
#define PATIENCE 500           /* with what was killed and goes on writing */
#define NEGLIGIBLE (1LL << 20)
#define FEW 50                 /* files */
#define QUICK 5                /* a measurement that is worth while after every action */

struct room { long long bytes, files; };

static struct {
    struct room left;          /* on the file system, when it was last measured */
    struct usage own;
    long long told, told_left; /* bytes: its own, and left, when nothing was last kept from us */
    long long measured, cost, asked, next, warned;  /* milliseconds */
    bool started;
    const char *breach;
} disk = {.warned = -AT_ONCE, .breach = ""};

static long long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static struct room room_left(void) {
    struct statvfs info;
    if (fstatvfs(box.root, &info)) return disk.left;
    return (struct room){(long long)(info.f_bfree * info.f_frsize), (long long)info.f_ffree};
}

static long long limit(const char *name) {
    return get_number(get(box.spec, "limits"), name);
}

static long long larger(long long a, long long b) {
    return a > b ? a : b;
}

void something_started(void) {
    disk.asked = milliseconds();
    if (disk.started) return;
    disk.started = true;
    disk.left = room_left();
    disk.told_left = disk.left.bytes;
}

int until_next_look(void) {
    if (!disk.started) return -1;
    return (int)larger(disk.next - milliseconds(), 0);
}

/* What the keeper's children started goes first, and where that does not help, they do: a shell can
   live on without a command, and tell of it. Waits for what is ended to have gone. */
static void end_what_runs(bool children) {
    const struct timespec moment = {0, 1000000};
    struct json list = {.kind = LIST}, *spared = calloc(box.count + 1, sizeof *spared);
    if (!spared) abort();
    for (size_t i = 0; i < box.count; i++) {
        spared[i] = (struct json){.kind = NUMBER, .number = box.children[i].pid};
        spared[i].next = i + 1 < box.count ? &spared[i + 1] : NULL;
    }
    list.first = box.count ? spared : NULL;
    kill_since(0, children ? NULL : &list, &box.blank);
    free(spared);
    for (int i = 0; i < PATIENCE; i++) {
        struct text left = {0};
        size_t count = children ? names_of_others(&left, NULL, 0) : background(&left);
        free(left.bytes);
        if (!count || nanosleep(&moment, NULL)) return;
    }
}

/* Whether what was last found is more than may be; what grows no more may stay. A child goes only
   while it works (`at_work`): once an action is over, its shell is not ended for it any more. */
static void judge(const struct usage *before, bool at_work) {
    bool met = disk.own.bytes > limit("disk");
    bool grown = disk.own.bytes > before->bytes || disk.own.files > before->files;
    if (!grown || (!met && disk.own.files <= limit("inodes"))) return;
    disk.breach = met ? "disk" : "inodes";
    end_what_runs(at_work && disk.measured - disk.warned < AT_ONCE);
    disk.warned = disk.measured;
    disk.left = room_left();
    measure(&disk.own);  /* what was written until it ended is no growth */
}

/* Where something is kept from us, all that has gone since is laid to the box once it is too much. */
static void suppose(void) {
    long long most = disk.told + disk.told_left - disk.left.bytes;
    if (!disk.own.unknown) {
        disk.told = disk.own.bytes;
        disk.told_left = disk.left.bytes;
    } else if (most > limit("disk")) {
        disk.own.bytes = most;
    }
}

static int measured(bool at_work) {
    struct usage before = disk.own;
    long long begun = milliseconds();
    disk.left = room_left();
    int result = measure(&disk.own);
    disk.measured = milliseconds();
    disk.cost = disk.measured - begun;
    if (result) return result;
    suppose();
    judge(&before, at_work);
    return 0;
}

int write_size(struct text *out) {
    if (measured(false)) return -1;
    long long bytes = limit("disk") - disk.own.bytes, files = limit("inodes") - disk.own.files;
    if (disk.left.bytes < bytes) bytes = disk.left.bytes;
    put_format(out, ", \"bytes\": %lld, \"files\": %lld, \"bytes_left\": %lld, \"files_left\": %lld",
               disk.own.bytes, disk.own.files, larger(bytes, 0), larger(files, 0));
    return 0;
}

/* Whether more has gone since the last measurement than was left to the box. */
static bool is_urgent(struct room gone) {
    return gone.bytes > larger(limit("disk") - disk.own.bytes, NEGLIGIBLE)
        || gone.files > larger(limit("inodes") - disk.own.files, 0);
}

static struct room gone(void) {
    struct room left = room_left();
    return (struct room){disk.left.bytes - left.bytes, disk.left.files - left.files};
}

void look_at_disk(void) {
    long long now = milliseconds();
    if (!disk.started || now < disk.next) return;
    struct room lost = gone();
    long long bytes = lost.bytes, files = lost.files;
    bool urgent = is_urgent(lost);
    bool due = (llabs(bytes) > NEGLIGIBLE || files) && now - disk.asked < LATELY;
    long long waited = now - disk.measured;
    if ((urgent && waited > larger(SOON, CHEAP * disk.cost))
        || (due && waited > larger(LATER, DEAR * disk.cost)))
        measured(true);  /* where it cannot, the next look will try again */
    disk.next = milliseconds() + (now - disk.asked < LATELY ? OFTEN : SELDOM);
}

/* What was met since this was last asked, which is when an action is over: what was written since the
   last look counts, too, and the next action is warned anew. */
const char *last_breach(void) {
    struct room lost = gone();
    bool moved = llabs(lost.bytes) > NEGLIGIBLE || llabs(lost.files) > FEW;
    bool cheap = disk.cost <= QUICK || milliseconds() - disk.measured > DEAR * disk.cost;
    if (disk.started && (is_urgent(lost) || (moved && cheap))) measured(false);
    const char *breach = disk.breach;
    disk.breach = "";
    disk.warned = -AT_ONCE;
    return breach;
}
