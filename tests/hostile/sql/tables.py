"""The tables on which generated statements run: a column of every type, and a second table."""

from __future__ import annotations

COLUMNS = {
    "int": ("id", "i", "ti", "bi"),
    "unsigned": ("u", "ub"),
    "decimal": ("d", "d0"),
    "float": ("f",),
    "double": ("x",),
    "year": ("y",),
    "date": ("da",),
    "datetime": ("dt", "dt3", "ts"),
    "time": ("tm", "tm2"),
    "text": ("c", "v", "vb", "l", "tx"),
    "enum": ("e",),
    "bytes": ("bl", "bn", "vbin"),
    "set": ("st",),
    "bits": ("bt", "b1"),
    "json": ("js",),
}
"""The columns of the table ``t`` by kind."""

DUMP = """
CREATE DATABASE `d` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE `d`;
CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT, `i` int DEFAULT NULL, `ti` tinyint DEFAULT NULL,
  `bi` bigint DEFAULT NULL, `u` int unsigned DEFAULT NULL, `ub` bigint unsigned DEFAULT NULL,
  `d` decimal(10,3) DEFAULT NULL, `d0` decimal(6,0) NOT NULL DEFAULT '7', `f` float DEFAULT NULL,
  `x` double DEFAULT NULL, `y` year DEFAULT NULL, `da` date DEFAULT NULL,
  `dt` datetime DEFAULT NULL,
  `dt3` datetime(3) DEFAULT NULL, `ts` timestamp NULL DEFAULT NULL, `tm` time DEFAULT NULL,
  `tm2` time(2) DEFAULT NULL, `c` char(5) DEFAULT NULL, `v` varchar(20) DEFAULT NULL,
  `vb` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `l` varchar(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL, `tx` text,
  `e` enum('low','mid','high') DEFAULT NULL, `bl` blob, `bn` binary(3) DEFAULT NULL,
  `vbin` varbinary(8) DEFAULT NULL, `st` set('red','green','blue') DEFAULT NULL,
  `bt` bit(9) DEFAULT NULL, `b1` bit(1) DEFAULT NULL, `js` json DEFAULT NULL,
  PRIMARY KEY (`id`), KEY `v` (`v`), UNIQUE KEY `ti` (`ti`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `t` VALUES
(1,5,1,1,3,3,1.500,1,1.5,0.1,2001,'2001-02-03','2001-02-03 04:05:06','2001-02-03 04:05:06.789',
 '2001-02-03 04:05:06','10:11:12','10:11:12.34','ab','Ann','Ann','Ann','some text','low',0x4142,
 0x414200,0x00ff,'red',b'101',b'1','{"a": {"b": 1}, "c": "x"}'),
(2,-7,-2,-9223372036854775807,0,9223372036854775807,-2.250,2,-2.25,-1e20,1999,'1999-12-31',
 '1999-12-31 23:59:59','1999-12-31 23:59:59.999','1999-12-31 23:59:59','23:59:59','00:00:00.50',
 'B','bob','BOB','bob','12abc','high',0xff00,0xffffff,0x6162,'red,blue',b'0',b'0','[1, 2, 3]'),
(3,0,0,0,4294967295,10,0.000,3,0,0,2024,'2024-02-29','2024-02-29 00:00:00',
 '2024-02-29 00:00:00.000','2024-02-29 00:00:00','00:00:00','00:00:00.00','','','','','','mid',
 '',0x000000,'','',b'111111111',b'1','"text"'),
(4,NULL,NULL,NULL,NULL,NULL,NULL,4,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,
 NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),
(5,2147483647,127,9223372036854775807,7,42,9999999.999,999999,3.25e10,1.7e100,2155,'9999-12-31',
 '2038-01-19 03:14:07','2020-06-15 12:30:45.125','2020-06-15 12:30:45','12:30:45','12:30:45.12',
 'Zo\u00eb','\u00c4pfel','\u00e4pfel','\u00c4pfel','2020-06-15','low',0xc3a4,0xc3a400,0x3132,'green',b'1000001',b'0','7'),
(6,10,10,12,10,12,10.100,10,0.1,12.5,2020,'2020-06-15','2020-06-15 12:30:45',
 '2020-06-15 12:30:45.120','2020-06-15 12:30:45','01:02:03','01:02:03.00','10','10','10','10',
 '10.5','mid',0x3130,0x313000,0x3130,'green,blue',b'110001',b'1','[]'),
(7,5,3,5,5,5,1.500,5,1.5,0.5,1970,'1970-01-01','1970-01-01 00:00:01','1970-01-01 00:00:01.000',
 '1970-01-01 00:00:01','00:00:01','00:00:01.00','AB','ann','ann','ann','a,b','high',0x6142,
 0x614200,0x4142,'blue',b'101',b'0','{"a": [true, null]}'),
(8,-1,-128,-1,1,1,-0.005,0,-0.5,-0.5,2000,'2000-01-01','2000-01-01 12:00:00',
 '2000-01-01 12:00:00.500','2000-01-01 12:00:00','12:00:00','12:00:00.00','x y','50%','a_b','x y',
 'x','low',0x3078,0x783000,0x78,'red,green,blue',b'11',NULL,'null');
CREATE TABLE `s` (
  `k` int NOT NULL, `i` int DEFAULT NULL, `v` varchar(20) DEFAULT NULL,
  `e` enum('b','a','c') DEFAULT NULL, `da` date DEFAULT NULL, `price` decimal(8,2) DEFAULT NULL,
  PRIMARY KEY (`k`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `s` VALUES (1,5,'ann','b','2001-02-03',9.50),(2,5,'Bob','a',NULL,20.00),
(3,-7,NULL,'c','1999-12-31',NULL),(6,10,'Zed','a','2020-06-15',0.10),(9,NULL,'','b','2024-02-29',20.00);
"""
