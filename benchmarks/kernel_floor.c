/* Does what the kernel has to do for one sandbox, in steps, without any of InterCode's code.
   kernel_floor.py compiles and times it: kernel_floor STEP COUNT does STEP and all steps before it
   COUNT times, in a process each, and prints the processor time of one of them in microseconds. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK, NAMESPACES, NETWORK, INIT, MOUNTS, ROOT, BASH };
#define NAMESPACE_FLAGS \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define STAGE "/tmp"

static void need(int result, const char *what) {
    if (result >= 0) return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    need(fd, path);
    need((int)write(fd, text, strlen(text)), path);
    close(fd);
}

static void make(const char *path) {
    need(mkdir(path, 0755), path);
}

static void add(const char *source, const char *target, const char *type, unsigned long flags,
                const char *options) {
    need(mount(source, target, type, flags, options), target);
}

/* Mount an overlay with the machine's programs, an upper layer in memory, /proc, /dev and /sys. The
   directory /usr serves as root, because the kernel merges no directory that holds other mounts. */
static void mount_files(void) {
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
    add("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    add("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m");
    need(chdir(STAGE), STAGE);
    make("upper");
    make("work");
    make("root");
    add("overlay", "root", "overlay", 0, "lowerdir=/usr,upperdir=upper,workdir=work,userxattr,xino=off,volatile");
    make("root/dev");
    make("root/proc");
    make("root/sys");
    add("tmpfs", "root/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char source[32], target[32];
        snprintf(source, sizeof source, "/dev/%s", nodes[i]);
        snprintf(target, sizeof target, "root/dev/%s", nodes[i]);
        close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        add(source, target, NULL, MS_BIND, NULL);
    }
    make("root/dev/pts");
    make("root/dev/shm");
    add("devpts", "root/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666");
    add("shm", "root/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m");
    add("proc", "root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    add("sysfs", "root/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL);
}

static void change_root(void) {
    need(chdir("root"), "root");
    need((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
    need(umount2(".", MNT_DETACH), "umount");
}

/* What runs in the new process namespace. */
static void run_inside(int step) {
    if (step >= MOUNTS) mount_files();
    if (step >= ROOT) change_root();
    if (step >= BASH) execl("/bin/bash", "bash", "-c", "true", NULL);
    _exit(step >= BASH);
}

static void run_outside(int step) {
    char map[64];
    snprintf(map, sizeof map, "0 %u 1", geteuid());
    if (step >= NAMESPACES) {
        need(unshare(NAMESPACE_FLAGS | (step >= NETWORK ? CLONE_NEWNET : 0)), "unshare");
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/uid_map", map);
        write_file("/proc/self/gid_map", map);
    }
    if (step < INIT) _exit(0);
    int status = 1;
    pid_t child = fork();
    need(child, "fork");
    if (child == 0) run_inside(step);
    need(waitpid(child, &status, 0), "wait");
    _exit(status != 0);
}

static double used(void) {
    double seconds = 0;
    struct rusage usage;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        getrusage(who, &usage);
        seconds += (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec
            + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return seconds;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int step = atoi(arguments[1]), times = atoi(arguments[2]);
    double before = used();
    for (int i = 0; i < times; i++) {
        int status = 1;
        pid_t child = fork();
        need(child, "fork");
        if (child == 0 && step < 0) {  /* bash alone */
            execl("/bin/bash", "bash", "-c", "true", NULL);
            _exit(1);
        }
        if (child == 0) run_outside(step);
        need(waitpid(child, &status, 0), "wait");
        if (status) return 1;
    }
    printf("%.1f\n", 1e6 * (used() - before) / times);
    return 0;
}
