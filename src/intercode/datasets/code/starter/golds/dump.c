#include <stdio.h>

int main(void) {
    unsigned char part[8];
    size_t count;
    long at = 0;
    while ((count = fread(part, 1, sizeof part, stdin)) > 0) {
        printf("%06lx", at);
        for (size_t i = 0; i < sizeof part; i++) {
            if (i < count) printf(" %02x", part[i]);
            else printf("   ");
        }
        putchar(' ');
        for (size_t i = 0; i < count; i++) putchar(part[i] >= 32 && part[i] < 127 ? part[i] : '.');
        putchar('\n');
        at += count;
    }
    return 0;
}
