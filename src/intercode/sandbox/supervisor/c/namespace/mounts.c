/* Lays out a box's root: layers under a writable upper, /dev, /sys, and what the box is told of the
   outside. See box/mounts.py, which says why. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define HARDENED (MS_NOSUID | MS_NODEV)
#define DEV (MS_NOSUID | MS_NOEXEC)
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const parts[] = {"lower", "upper", "work", "root", "fresh", "none"};

static int made(const char *path) {
    return mkdir(path, 0755) ? failed("mkdir %s", path) : 0;
}

static int linked(const char *target, const char *path) {
    return symlink(target, path) ? failed("symlink %s", path) : 0;
}

static int opened(const char *path) {
    int fd = open(path, DIRECTORY);
    return fd < 0 ? failed("%s", path) : fd;
}

static int bound(const char *source, const char *target, unsigned long more) {
    return mounted(source, target, NULL, MS_BIND | more, NULL);
}

static int shared_memory(const char *dev) {
    char path[64];
    snprintf(path, sizeof path, "%s/shm", dev);
    return mounted("shm", path, "tmpfs", DEV | MS_NODEV, "mode=1777,size=64m,nr_inodes=1024");
}

static int devices(void) {
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {
        {"/proc/self/fd", "dev/fd"}, {"/proc/self/fd/0", "dev/stdin"},
        {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
        {"pts/ptmx", "dev/ptmx"}, {"/proc/self/fd/62", "dev/bash"},
    };
    if (mounted("tmpfs", "dev", "tmpfs", DEV, "mode=755,size=64k,nr_inodes=64")) return -1;
    for (size_t i = 0; i < COUNT(names); i++) {
        char source[32], target[32];
        snprintf(source, sizeof source, "/dev/%s", names[i]);
        snprintf(target, sizeof target, "dev/%s", names[i]);
        int fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        if (fd < 0) return failed("%s", target);
        close(fd);
        if (bound(source, target, 0)) return -1;
    }
    for (size_t i = 0; i < COUNT(links); i++)
        if (linked(links[i][0], links[i][1])) return -1;
    if (made("dev/pts") || mounted("devpts", "dev/pts", "devpts", DEV,
                                   "newinstance,ptmxmode=0666,mode=620"))
        return -1;
    return made("dev/shm") || shared_memory("dev") ? -1 : 0;
}

static int system_files(bool own_network) {
    struct stat found;
    if (own_network) return mounted("sysfs", "sys", "sysfs", HARDENED | MS_NOEXEC | MS_RDONLY, NULL);
    if (bound("/sys", "sys", MS_REC) || made_read_only("sys")) return -1;
    if (stat("sys/fs/cgroup", &found) || !S_ISDIR(found.st_mode)) return 0;
    return mounted("tmpfs", "sys/fs/cgroup", "tmpfs", HARDENED | MS_RDONLY, "mode=555,size=4k");
}

/* Mount what does not depend on the request below the stage, and go there. */
int prepare(const char *stage, bool own_network) {
    if (mounted("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return -1;
    if (mounted("tmpfs", stage, "tmpfs", HARDENED, "mode=755,size=1m,nr_inodes=100")) return -1;
    if (chdir(stage)) return failed("%s", stage);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (made(parts[i])) return -1;
    if (made("proc") || made("dev") || made("sys")) return -1;
    return devices() || system_files(own_network) ? -1 : 0;
}


static void size_of(char *out, size_t room, const char *before, const struct json *limits) {
    snprintf(out, room, "%ssize=%lld,nr_inodes=%lld", before, get_number(limits, "disk"),
             get_number(limits, "inodes"));
}

/* An overlay's options; those in the box can read them. */
static void stack(struct text *out, const char *lowers, const char *upper, const char *work,
                  bool only_in_memory) {
    put_format(out, "lowerdir=");
    put(out, lowers, strlen(lowers));
    put_format(out, ",upperdir=%s,workdir=%s,userxattr,xino=off%s", upper, work,
               only_in_memory ? ",volatile" : "");
}

/* Have what is mounted at a path at the same one of the new root. */
static int shown_again(const char *prefix, const char *path) {
    char source[PATH_MAX], target[PATH_MAX];
    snprintf(source, sizeof source, "%s%s", prefix, path);
    snprintf(target, sizeof target, "root%s", path);
    return bound(source, target, MS_REC);
}

static int show_all_again(const char *prefix) {
    return shown_again(prefix, "/proc") || shown_again(prefix, "/dev")
        || shown_again(prefix, "/sys") ? -1 : 0;
}

/* A directory whose place on the machine the box must not learn: a bind's mountinfo tells it, an
   overlay's tells only the names that it was mounted by. */
static int show(int number, const char *source, const char *target) {
    char name[32], none[40], options[128];
    snprintf(name, sizeof name, "shown%d", number);
    snprintf(none, sizeof none, "%s.none", name);
    snprintf(options, sizeof options, "lowerdir=%s:%s,userxattr,xino=off", name, none);
    if (linked(source, name) || made(none)) return -1;
    return mounted("overlay", target, "overlay", HARDENED | MS_RDONLY, options);
}

static int show_outside(const struct json *spec) {
    char target[PATH_MAX];
    int number = 0;
    const struct json *binds = get(spec, "binds"), *shown = get(spec, "shown");
    for (const struct json *v = binds ? binds->first : NULL; v; v = v->next) {
        snprintf(target, sizeof target, "root%s", v->first->next->text);
        if (bound(v->first->text, target, MS_REC) || made_read_only(target)) return -1;
    }
    for (const struct json *v = shown ? shown->first : NULL; v; v = v->next) {
        snprintf(target, sizeof target, "root%s", v->first->next->text);
        if (show(number++, v->first->text, target)) return -1;
    }
    return 0;
}

/* Links to the layers by their number, so that no path of the machine shows in the box's mounts, and
   the mount of them all. */
static int lay_lowers(struct layout *layout, const struct json *spec, struct text *lowers) {
    const struct json *layers = get(spec, "layers");
    struct text options = {0};
    int number = 0;
    for (const struct json *v = layers ? layers->first : NULL; v; v = v->next) {
        char name[16];
        snprintf(name, sizeof name, "%d", number);
        if (linked(v->text, name)) return -1;
        put_format(lowers, "%s%d", number ? ":" : "", number);
        number++;
    }
    put_format(&options, "lowerdir=");
    put(&options, lowers->bytes, lowers->length);
    put_format(&options, ":none,userxattr,xino=off");
    int result = mounted("overlay", "lower", "overlay", HARDENED | MS_RDONLY, options.bytes);
    free(options.bytes);
    return result ? -1 : (layout->lower = opened("lower")) < 0 ? -1 : 0;
}

/* Uppers that nothing changes any more, mounted between the layers and the box's own. */
static int lay_sealed(const int *fds, size_t count, struct text *between) {
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "sealed%zu", i);
        if (made(name) || attached(fds[i], name)) return -1;
        put_format(between, "%s:", name);
    }
    return 0;
}

/* The upper stays mounted where nobody sees it, below /dev, to be sealed one day. */
static int bury(int *base) {
    if (bound(".", "root/dev", 0) || bound("lower", "root/dev/lower", 0)) return -1;
    return (*base = opened("root/dev")) < 0 ? -1 : 0;
}

static int copy_uppers(const int *fds, size_t count, const char *upper) {
    int into = opened(upper), result = into < 0 ? -1 : 0;
    for (size_t i = 0; !result && i < count; i++) result = copy_tree(fds[i], into, 0);
    close(into);
    return result;
}

static int mount_root(struct layout *layout, const struct json *spec, const int *fds, size_t count) {
    const char *disk = get_text(spec, "upper");
    const char *upper = *disk ? "disk/upper" : "upper", *work = *disk ? "disk/work" : "work";
    size_t copies = (size_t)get_number(spec, "copies");
    struct text lowers = {0}, all = {0}, options = {0};
    if (*disk && linked(disk, "disk")) return -1;
    if (lay_lowers(layout, spec, &lowers)) return -1;
    if (copy_uppers(fds, copies, upper)) return -1;
    put(&all, "", 0);
    if (lay_sealed(fds + copies, count - copies, &all)) return -1;
    put(&all, lowers.bytes, lowers.length);
    stack(&options, all.bytes, upper, work, !*disk);
    if (mounted("overlay", "root", "overlay", HARDENED, options.bytes)) return -1;
    layout->base = -1;
    if (!*disk) {
        if (bury(&layout->base)) return -1;
        upper = "root/dev/upper";
    }
    layout->count = 1 + count - copies;
    layout->uppers = calloc(layout->count, sizeof *layout->uppers);
    if ((layout->uppers[0] = opened(upper)) < 0) return -1;
    for (size_t i = 1; i < layout->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "sealed%zu", i - 1);
        if ((layout->uppers[i] = opened(name)) < 0) return -1;
    }
    free(lowers.bytes);
    free(all.bytes);
    free(options.bytes);
    return 0;
}

int lay_out(struct layout *layout, const struct json *spec, const int *fds, size_t count) {
    char size[128];
    size_of(size, sizeof size, "", get(spec, "limits"));
    if (mounted("none", ".", NULL, HARDENED | MS_REMOUNT, size)) return -1;
    if (mount_root(layout, spec, fds, count) || show_outside(spec)) return -1;
    if (strcmp(get_text(spec, "look"), "docker")  /* so that nobody can remove what it holds */
        && mounted("none", "dev", NULL, DEV | MS_BIND | MS_REMOUNT | MS_RDONLY, NULL))
        return -1;
    if (show_all_again(".")) return -1;
    return chdir("root") ? failed("root") : pivoted();
}

/* The layers of a fresh root: all of them merged, the others empty, so that it looks the same. */
static int lay_fresh(const struct json *spec) {
    struct text lowers = {0}, options = {0};
    size_t layers = get(spec, "layers")->length;
    if (linked("lower", "0")) return -1;
    put_format(&lowers, "0");
    for (size_t i = 1; i < layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        if (made(name)) return -1;
        put_format(&lowers, ":%zu", i);
    }
    stack(&options, lowers.bytes, "upper", "work", true);
    int result = mounted("overlay", "root", "overlay", HARDENED, options.bytes);
    free(lowers.bytes);
    free(options.bytes);
    return result;
}

static int show_again(const struct json *spec) {
    static const char *const kinds[] = {"binds", "shown"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct json *list = get(spec, kinds[i]);
        for (const struct json *v = list ? list->first : NULL; v; v = v->next)
            if (shown_again("", v->first->next->text)) return -1;
    }
    return show_all_again("");
}

/* Give a box in which nothing works a fresh upper, or a copy of others, and change to the new root. */
int renew(struct layout *layout, const struct json *spec, const int *fds, size_t count) {
    char size[128], path[32];
    int base = layout->base, upper;
    size_of(size, sizeof size, "mode=755,", get(spec, "limits"));
    if (fchdir(base)) return failed("the hidden directory");
    if (mounted("tmpfs", "fresh", "tmpfs", HARDENED, size)) return -1;
    for (size_t i = 0; i < COUNT(parts); i++) {
        snprintf(path, sizeof path, "fresh/%s", parts[i]);
        if (made(path)) return -1;
    }
    if (bound("lower", "fresh/lower", 0)) return -1;
    if (chdir("fresh")) return failed("fresh");
    if (copy_uppers(fds, count, "upper") || lay_fresh(spec) || bury(&layout->base)) return -1;
    if ((upper = opened("root/dev/upper")) < 0) return -1;
    if (unmounted("/dev/shm") || shared_memory("/dev") || show_again(spec)) return -1;
    if (chdir("root")) return failed("root");
    if (pivoted()) return -1;
    close(base);
    for (size_t i = 0; i < layout->count; i++) close(layout->uppers[i]);
    layout->count = 1;
    layout->uppers[0] = upper;
    return 0;
}
