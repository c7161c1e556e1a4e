/* Removes objects other than files that outlive the processes of a container: System V shared
   memory, semaphores and queues, POSIX queues, and the content of /dev/shm. */

#define _GNU_SOURCE
#include "scanned/scanned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

enum ipc_kind { MEMORY, SEMAPHORES, QUEUES };

static int remove_object(enum ipc_kind ipc_kind, int id) {
    int result = ipc_kind == MEMORY ? shmctl(id, IPC_RMID, NULL)
        : ipc_kind == SEMAPHORES ? semctl(id, 0, IPC_RMID) : msgctl(id, IPC_RMID, NULL);
    return result && errno != EINVAL && errno != EIDRM ? fail("object %d of System V", id) : 0;
}

static int remove_objects(enum ipc_kind ipc_kind, const char *list) {
    char *line = NULL;
    size_t capacity = 0;
    int id, result = 0;
    FILE *file = fopen(list, "re");
    /* the kernel lacks POSIX queues */
    if (!file) return errno == ENOENT ? 0 : fail("%s", list);
    while (!result && getline(&line, &capacity, file) > 0)
        if (sscanf(line, "%*d %d", &id) == 1) result = remove_object(ipc_kind, id);
    free(line);
    fclose(file);
    return result;
}

/* Remove everything in a directory on another mount. */
static int empty_directory(const char *path) {
    struct names names = {0};
    struct stat info;
    int result = 0, fd = open(path, DIRECTORY);
    if (fd < 0) return errno == ENOENT ? 0 : fail("%s", path);
    if (list_names(fd, &names)) result = fail("%s", path);
    for (size_t i = 0; !result && i < names.count; i++) {
        if (fstatat(fd, names.name[i], &info, AT_SYMLINK_NOFOLLOW)) continue;
        if (S_ISDIR(info.st_mode)) result = remove_tree(names.name[i], fd);
        else if (unlinkat(fd, names.name[i], 0)) result = fail("%s/%s", path, names.name[i]);
    }
    free_names(&names);
    close(fd);
    return result;
}

int clear_ipc(void) {
    if (remove_objects(MEMORY, "/proc/sysvipc/shm")
        || remove_objects(SEMAPHORES, "/proc/sysvipc/sem")
        || remove_objects(QUEUES, "/proc/sysvipc/msg"))
        return -1;
    return empty_directory("/dev/shm") || empty_directory("/dev/mqueue") ? -1 : 0;
}
