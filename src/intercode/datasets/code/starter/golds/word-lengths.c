#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    size_t room = 1024, length = 0;
    long *counts = calloc(room, sizeof *counts);
    int sign;
    do {
        sign = getchar();
        if (sign != EOF && !isspace(sign)) {
            length++;
        } else if (length) {
            if (length >= room) {
                counts = realloc(counts, 2 * length * sizeof *counts);
                for (size_t i = room; i < 2 * length; i++) counts[i] = 0;
                room = 2 * length;
            }
            counts[length]++;
            length = 0;
        }
    } while (sign != EOF);
    for (size_t i = 1; i < room; i++)
        if (counts[i]) printf("%zu %ld\n", i, counts[i]);
    return 0;
}
