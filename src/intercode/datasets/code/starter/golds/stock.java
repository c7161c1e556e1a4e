import java.util.Scanner;
import java.util.TreeMap;

public class Main {
    public static void main(String[] arguments) {
        var held = new TreeMap<String, Integer>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String what = input.next();
            if (what.equals("show")) {
                held.forEach((name, count) -> {
                    if (count > 0) System.out.println(name + " " + count);
                });
                System.out.println("--");
                continue;
            }
            String name = input.next();
            int count = input.nextInt();
            if (what.equals("add")) held.merge(name, count, Integer::sum);
            else if (held.getOrDefault(name, 0) < count) System.out.println("not enough " + name);
            else held.merge(name, -count, Integer::sum);
        }
    }
}
