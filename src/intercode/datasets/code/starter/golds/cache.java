import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        int room = input.nextInt();
        var held = new LinkedHashMap<String, String>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, String> eldest) {
                return size() > room;
            }
        };
        while (input.hasNext()) {
            if (input.next().equals("put")) held.put(input.next(), input.next());
            else System.out.println(held.getOrDefault(input.next(), "-"));
        }
    }
}
