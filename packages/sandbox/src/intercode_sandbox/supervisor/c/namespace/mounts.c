/* Mounts the root of a sandbox: layers under a writable upper layer, /dev, /sys and directories of
   the machine. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define HARDENED_FLAGS (MS_NOSUID | MS_NODEV)
#define DEV_FLAGS (MS_NOSUID | MS_NOEXEC)
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const stage_directories[] = {"lower", "upper", "work", "root", "fresh", "none"};

static int make_directory(const char *path) {
    return mkdir(path, 0755) ? fail("mkdir %s", path) : 0;
}

static int make_link(const char *target, const char *path) {
    return symlink(target, path) ? fail("symlink %s", path) : 0;
}

static int open_directory(const char *path) {
    int fd = open(path, DIRECTORY);
    return fd < 0 ? fail("%s", path) : fd;
}

static int bind_mount(const char *source, const char *target, unsigned long flags) {
    return sys_mount(source, target, NULL, MS_BIND | flags, NULL);
}

static int mount_shm(const char *dev) {
    char path[64];
    snprintf(path, sizeof path, "%s/shm", dev);
    return sys_mount("shm", path, "tmpfs", DEV_FLAGS | MS_NODEV,
                     "mode=1777,size=64m,nr_inodes=1024");
}

static int mount_terminals(const char *dev) {
    char path[64];
    snprintf(path, sizeof path, "%s/pts", dev);
    return sys_mount("devpts", path, "devpts", DEV_FLAGS,
                     "newinstance,ptmxmode=0666,mode=620,max=64");
}

/* Give a sandbox in which nothing runs new terminals: processes can change the old ones' modes. */
int remount_terminals(void) {
    return sys_umount("/dev/pts") || mount_terminals("/dev") ? -1 : 0;
}

/* Mount /dev, with nodes that lie in the directory `devices`. They are read-only, which allows
   writing to the devices, but not changing the nodes' times. */
static int mount_dev(const char *devices) {
    static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const links[][2] = {
        {"/proc/self/fd", "dev/fd"}, {"/proc/self/fd/0", "dev/stdin"},
        {"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
        {"pts/ptmx", "dev/ptmx"}, {"/proc/self/fd/62", "dev/bash"},
    };
    if (sys_mount("tmpfs", "dev", "tmpfs", DEV_FLAGS, "mode=755,size=64k,nr_inodes=64")) return -1;
    for (size_t i = 0; i < COUNT(names); i++) {
        char source[PATH_MAX], target[32];
        snprintf(source, sizeof source, "%s/%s", devices, names[i]);
        snprintf(target, sizeof target, "dev/%s", names[i]);
        int fd = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
        if (fd < 0) return fail("%s", target);
        close(fd);
        if (bind_mount(source, target, 0) || make_read_only(target)) return -1;
    }
    for (size_t i = 0; i < COUNT(links); i++)
        if (make_link(links[i][0], links[i][1])) return -1;
    if (make_directory("dev/pts") || mount_terminals("dev")) return -1;
    return make_directory("dev/shm") || mount_shm("dev") ? -1 : 0;
}

/* Bind a file of the machine, or a directory that holds mounts, which no overlay can show. */
static int mount_by_bind(const char *source, const char *target) {
    return bind_mount(source, target, MS_REC) || make_read_only(target) ? -1 : 0;
}

static int mount_sys(bool own_network) {
    struct stat found;
    if (own_network)
        return sys_mount("sysfs", "sys", "sysfs", HARDENED_FLAGS | MS_NOEXEC | MS_RDONLY, NULL);
    if (mount_by_bind("/sys", "sys")) return -1;
    if (stat("sys/fs/cgroup", &found) || !S_ISDIR(found.st_mode)) return 0;
    return sys_mount("tmpfs", "sys/fs/cgroup", "tmpfs", HARDENED_FLAGS | MS_RDONLY,
                     "mode=555,size=4k");
}

/* Mount what does not depend on the request below the stage directory, and change to it. */
int prepare_stage(const char *stage, bool own_network, const char *devices) {
    if (sys_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return -1;
    if (sys_mount("tmpfs", stage, "tmpfs", HARDENED_FLAGS, "mode=755,size=1m,nr_inodes=100"))
        return -1;
    if (chdir(stage)) return fail("%s", stage);
    for (size_t i = 0; i < COUNT(stage_directories); i++)
        if (make_directory(stage_directories[i])) return -1;
    if (make_directory("proc") || make_directory("dev") || make_directory("sys")) return -1;
    return mount_dev(devices) || mount_sys(own_network) ? -1 : 0;
}

static void format_size_options(char *out, size_t capacity, const char *prefix,
                                const struct json *limits) {
    snprintf(out, capacity, "%ssize=%lld,nr_inodes=%lld", prefix, json_number(limits, "disk"),
             json_number(limits, "inodes"));
}

/* Write an overlay's options. Processes in the sandbox can read them. `volatile`: nothing needs to be
   written to a disk. */
static void format_overlay_options(struct text *out, const char *lowers, const char *upper,
                                   const char *work,
                                   bool is_volatile) {
    append_format(out, "lowerdir=");
    append(out, lowers, strlen(lowers));
    append_format(out, ",upperdir=%s,workdir=%s,userxattr,xino=off%s", upper, work,
                  is_volatile ? ",volatile" : "");
}

/* Bind a mount of the stage to the same path of the new root. It is not moved, because mounts are
   listed in the order of their creation, which should not vary. */
static int bind_into_root(const char *prefix, const char *path, unsigned long flags) {
    char source[PATH_MAX], target[PATH_MAX];
    snprintf(source, sizeof source, "%s%s", prefix, path);
    snprintf(target, sizeof target, "root%s", path);
    return bind_mount(source, target, flags);
}

static int bind_system_mounts(const char *prefix) {
    return bind_into_root(prefix, "/proc", MS_REC) || bind_into_root(prefix, "/dev", MS_REC)
        || bind_into_root(prefix, "/sys", MS_REC) ? -1 : 0;
}

/* Mount a directory of the machine by an overlay of its own. A bind mount would show the path on the
   machine in mountinfo, and share inodes, with their locks and watches, with the machine and other
   sandboxes. */
static int mount_anonymously(int number, const char *source, const char *target) {
    char name[32], none[40], options[128];
    snprintf(name, sizeof name, "shown%d", number);
    snprintf(none, sizeof none, "%s.none", name);
    snprintf(options, sizeof options, "lowerdir=%s:%s,userxattr,xino=off", name, none);
    if (make_link(source, name) || make_directory(none)) return -1;
    return sys_mount("overlay", target, "overlay", HARDENED_FLAGS | MS_RDONLY, options);
}

static int mount_host_files(const struct json *spec) {
    static const char *const kinds[] = {"binds", "anonymous_mounts"};
    char target[PATH_MAX], empty[PATH_MAX] = "";
    struct stat found;
    int number = json_get(spec, "mounts") ? (int)json_get(spec, "mounts")->length : 0;  /* the first ones are theirs */
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct json *list = json_get(spec, kinds[i]);
        for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
            const char *source = *v->first->text ? v->first->text : "none";
            snprintf(target, sizeof target, "root%s", v->first->next->text);
            if (access(target, F_OK)) continue;  /* a hidden file was deleted */
            if (!*v->first->text && *empty) {  /* empty directories share one overlay */
                if (mount_by_bind(empty, target)) return -1;
                continue;
            }
            if (!*v->first->text) memcpy(empty, target, sizeof empty);
            /* an overlay costs more than a bind, and nobody waits for or watches settings */
            if (strncmp(source, "/etc/", 5) && !stat(source, &found) && S_ISDIR(found.st_mode)
                && !mount_anonymously(number++, source, target))
                continue;
            if (mount_by_bind(source, target)) return -1;
        }
    }
    return 0;
}

/* The directories of the machine that the owner has asked for: open mounts, in the order of the
   specification. */
static int *shown;

/* Open a directory without following links. */
static int open_exactly(int directory, const char *path, uint64_t resolve) {
    struct open_how how = {
        .flags = O_PATH | DIRECTORY,
        .resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return open_resolved(directory, path, &how);
}

/* Mount one in the stage directory, by an overlay: through it, no program reaches a socket or lock of
   the machine. It is the one that the owner has checked, or none. */
static int mount_shown(int number, const char *source, const char *identity) {
    char lower[32], merged[32];
    int fd = open_exactly(AT_FDCWD, source, 0), tree = -1;
    snprintf(lower, sizeof lower, "source%d", number);
    snprintf(merged, sizeof merged, "merged%d", number);
    if (fd < 0 || !has_identity(fd, identity) || (tree = clone_mount(fd)) < 0 || make_directory(lower)
        || make_directory(merged) || attach_mount(tree, lower)
        || mount_anonymously(number, lower, merged))
        return fail("%s cannot be shown", source);
    close(fd);
    close(tree);
    return (shown[number] = open(merged, O_PATH | DIRECTORY)) < 0 ? fail("%s", merged) : 0;
}

/* Attach copies of the mounts to a new root. The files of the sandbox decide neither what is shown, nor
   where. */
static int attach_shown(const struct json *list) {
    int *copies = calloc(list->length, sizeof *copies), number = 0, result = 0;
    int root = copies ? open_directory("root") : -1;
    if (root < 0) return -1;
    for (const struct json *v = list->first; v && !result; v = v->next) {
        const char *path = v->first->next->text;
        int place = open_exactly(root, path + 1, RESOLVE_BENEATH | RESOLVE_NO_XDEV);
        if (place < 0) result = fail("nothing can be mounted at %s", path);
        else if ((copies[number] = clone_mount(shown[number])) < 0) result = -1;
        else result = attach_mount_at(copies[number++], place);
        if (place >= 0) close(place);
    }
    int *old = result ? copies : shown, code = errno;
    for (int i = 0; i < (result ? number : (int)list->length); i++) close(old[i]);
    if (!result) shown = copies;
    free(old);
    close(root);
    return errno = code, result;
}

static int show_mounts(const struct json *spec) {
    const struct json *list = json_get(spec, "mounts");
    int number = 0;
    if (!list || !list->length) return 0;
    if (!shown) {
        if (!(shown = calloc(list->length, sizeof *shown))) return -1;
        for (const struct json *v = list->first; v; v = v->next, number++)
            if (mount_shown(number, v->first->text, v->first->next->next->text)) return -1;
    }
    return attach_shown(list);
}

/* Link the layers by number, so that no path of the machine shows in the sandbox's mounts, or attach
   them if they are given as mounts, and mount all of them merged. */
static int mount_lowers(struct layout *layout, const struct json *spec, const int *fds,
                        struct text *lowers) {
    const struct json *layers = json_get(spec, "layers");
    struct text options = {0};
    int number = 0;
    for (const struct json *v = layers ? layers->first : NULL; v; v = v->next) {
        char name[16];
        snprintf(name, sizeof name, "%d", number);
        if (fds ? make_directory(name) || attach_mount(fds[number], name)
                : make_link(v->text, name))
            return -1;
        append_format(lowers, "%s%d", number ? ":" : "", number);
        number++;
    }
    append_format(&options, "lowerdir=");
    append(&options, lowers->bytes, lowers->length);
    append_format(&options, ":none,userxattr,xino=off");
    int result = sys_mount("overlay", "lower", "overlay", HARDENED_FLAGS | MS_RDONLY,
                           options.bytes);
    free(options.bytes);
    return result ? -1 : (layout->lower = open_directory("lower")) < 0 ? -1 : 0;
}

/* Attach sealed upper layers between the image's layers and the sandbox's own. */
static int mount_sealed(const int *fds, size_t count, struct text *between) {
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "sealed%zu", i);
        if (make_directory(name) || attach_mount(fds[i], name)) return -1;
        append_format(between, "%s:", name);
    }
    return 0;
}

/* Bind the upper layer to a hidden directory below /dev, so that it can be sealed later. */
static int hide_layers(int *hidden) {
    if (bind_mount(".", "root/dev", 0) || bind_mount("lower", "root/dev/lower", 0)) return -1;
    return (*hidden = open_directory("root/dev")) < 0 ? -1 : 0;
}

/* Copy an upper layer, which is given as an open directory or as a mount. */
static int copy_upper(int fd, int target) {
    if (!(fcntl(fd, F_GETFL) & O_PATH)) return copy_tree(fd, target, 0);
    int source = openat(fd, ".", DIRECTORY);
    if (source < 0) return fail("an upper layer");
    int result = copy_tree(source, target, 0);
    close(source);
    return result;
}

static int copy_uppers(const int *fds, size_t count, const char *upper) {
    int target = open_directory(upper), result = target < 0 ? -1 : 0;
    for (size_t i = 0; !result && i < count; i++) result = copy_upper(fds[i], target);
    close(target);
    return result;
}

static int mount_root(const struct text *options) {
    unsigned long flags = sandbox.allows_set_user_id ? MS_NODEV : HARDENED_FLAGS;
    return sys_mount("overlay", "root", "overlay", flags, options->bytes);
}

static int mount_overlay_root(struct layout *layout, const struct json *spec, const int *fds,
                              size_t count) {
    const char *disk = json_text(spec, "upper");
    const char *upper = *disk ? "disk/upper" : "upper", *work = *disk ? "disk/work" : "work";
    size_t copies = (size_t)json_number(spec, "copies");
    struct text lowers = {0}, layers = {0}, options = {0};
    if (*disk && make_link(disk, "disk")) return -1;
    size_t given = json_bool(spec, "has_layers") ? json_get(spec, "layers")->length : 0;
    if (given > count) return errno = EINVAL, fail("layers");
    if (mount_lowers(layout, spec, given ? fds : NULL, &lowers)) return -1;
    fds += given;
    count -= given;
    if (copy_uppers(fds, copies, upper)) return -1;
    append(&layers, "", 0);
    if (mount_sealed(fds + copies, count - copies, &layers)) return -1;
    append(&layers, lowers.bytes, lowers.length);
    format_overlay_options(&options, layers.bytes, upper, work, !*disk);
    if (mount_root(&options)) return -1;
    layout->hidden_directory = -1;
    if (!*disk) {
        if (hide_layers(&layout->hidden_directory)) return -1;
        upper = "root/dev/upper";
    }
    layout->count = 1 + count - copies;
    layout->uppers = calloc(layout->count, sizeof *layout->uppers);
    if ((layout->uppers[0] = open_directory(upper)) < 0) return -1;
    for (size_t i = 1; i < layout->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "sealed%zu", i - 1);
        if ((layout->uppers[i] = open_directory(name)) < 0) return -1;
    }
    free(lowers.bytes);
    free(layers.bytes);
    free(options.bytes);
    return 0;
}

int mount_root_layout(struct layout *layout, const struct json *spec, const int *fds,
                      size_t count) {
    char size[128];
    format_size_options(size, sizeof size, "", json_get(spec, "limits"));
    if (sys_mount("none", ".", NULL, HARDENED_FLAGS | MS_REMOUNT, size)) return -1;
    if (mount_overlay_root(layout, spec, fds, count) || mount_host_files(spec)
        || show_mounts(spec))
        return -1;
    /* so that the files in it cannot be removed */
    if (strcmp(json_text(spec, "appearance"), "docker")
        && sys_mount("none", "dev", NULL, DEV_FLAGS | MS_BIND | MS_REMOUNT | MS_RDONLY, NULL))
        return -1;
    if (bind_system_mounts(".")) return -1;
    return chdir("root") ? fail("root") : enter_new_root();
}

/* Mount the overlay of a fresh root: the merged layers as the first lower layer, and empty ones for
   the others, so that the mount options stay the same. */
static int mount_fresh_root(const struct json *spec) {
    struct text lowers = {0}, options = {0};
    size_t layers = json_get(spec, "layers")->length;
    if (make_link("lower", "0")) return -1;
    append_format(&lowers, "0");
    for (size_t i = 1; i < layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        if (make_directory(name)) return -1;
        append_format(&lowers, ":%zu", i);
    }
    format_overlay_options(&options, lowers.bytes, "upper", "work", true);
    int result = mount_root(&options);
    free(lowers.bytes);
    free(options.bytes);
    return result;
}

/* Bind what mount_host_files has mounted. Only what a bind showed there holds mounts of the machine,
   which the kernel does not allow to leave out; all others are bound one by one, in their order. */
static int bind_all_into_root(const struct json *spec) {
    static const char *const kinds[] = {"binds", "anonymous_mounts"};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct json *list = json_get(spec, kinds[i]);
        for (const struct json *v = list ? list->first : NULL; v; v = v->next) {
            const char *path = v->first->next->text;
            if (!access(path, F_OK) && bind_into_root("", path, 0)
                && bind_into_root("", path, MS_REC))
                return -1;
        }
    }
    return bind_system_mounts("");
}

/* Give a sandbox in which nothing runs a fresh upper layer, with copies of others if there are
   any, and change to the new root. A waiting process has the new root afterwards, but keeps its
   working directory with the old files. */
int remount_root(struct layout *layout, const struct json *spec, const int *fds, size_t count) {
    char size[128], path[32];
    int hidden = layout->hidden_directory, upper;
    format_size_options(size, sizeof size, "mode=755,", json_get(spec, "limits"));
    if (fchdir(hidden)) return fail("the hidden directory of the layers");
    if (sys_mount("tmpfs", "fresh", "tmpfs", HARDENED_FLAGS, size)) return -1;
    for (size_t i = 0; i < COUNT(stage_directories); i++) {
        snprintf(path, sizeof path, "fresh/%s", stage_directories[i]);
        if (make_directory(path)) return -1;
    }
    if (bind_mount("lower", "fresh/lower", 0)) return -1;
    if (chdir("fresh")) return fail("fresh");
    if (copy_uppers(fds, count, "upper") || mount_fresh_root(spec)
        || show_mounts(spec) || hide_layers(&layout->hidden_directory))
        return -1;
    if ((upper = open_directory("root/dev/upper")) < 0) return -1;
    if (sys_umount("/dev/shm") || mount_shm("/dev") || bind_all_into_root(spec)) return -1;
    if (chdir("root")) return fail("root");
    if (enter_new_root() || unmount_old_root()) return -1;
    close(hidden);
    for (size_t i = 0; i < layout->count; i++) close(layout->uppers[i]);
    layout->count = 1;
    layout->uppers[0] = upper;
    return 0;
}
