#include <stdio.h>

int main(void) {
    int sign = getchar();
    while (sign != EOF) {
        int next, run = 1;
        while ((next = getchar()) == sign && sign != '\n') run++;
        if (run > 1) printf("%d", run);
        putchar(sign);
        while (sign == '\n' && next == '\n') {
            putchar('\n');
            next = getchar();
        }
        sign = next;
    }
    return 0;
}
