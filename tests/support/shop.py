"""A small dump for tests: a shop, and a second database that sessions must not see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from intercode.core.types import DatabaseSpec

SECRET = "xyzzy-4711"

DUMP = f"""
-- as mysqldump writes it
CREATE USER 'admin'@'%' IDENTIFIED BY 'admin';
GRANT ALL PRIVILEGES ON *.* TO 'admin'@'%';
CREATE DATABASE IF NOT EXISTS `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
DROP TABLE IF EXISTS `customer`;
CREATE TABLE `customer` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(40) DEFAULT NULL,
  `city` text,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
LOCK TABLES `customer` WRITE;
INSERT INTO `customer` VALUES (1,'Ann; or so','Bern'),(2,'Bob''s \\\\ \\n','Basel'),(3,NULL,'Bern');
UNLOCK TABLES;
CREATE TABLE `sale` (
  `id` int NOT NULL,
  `customer_id` int DEFAULT NULL,
  `price` decimal(8,2) DEFAULT NULL,
  `day` date DEFAULT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `sale_fk` FOREIGN KEY (`customer_id`) REFERENCES `customer` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `sale` VALUES (1,1,9.50,'2024-01-02'),(2,1,20.00,'2024-02-03'),(3,2,9.50,NULL);
CREATE TABLE `shop` (
  `id` int NOT NULL,
  `street` varchar(40) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `shop` VALUES (1,'Main Street');
CREATE DATABASE `vault`;
USE `vault`;
CREATE TABLE `secrets` (
  `word` varchar(40) NOT NULL,
  PRIMARY KEY (`word`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `secrets` VALUES ('{SECRET}');
"""

CUSTOMERS = "[(1, 'Ann; or so', 'Bern'), (2, \"Bob's \\\\ \\n\", 'Basel'), (3, None, 'Bern')]"
"""The output of `SELECT * FROM customer`."""


def write_shop(folder: Path) -> Path:
    """Write the dump to a folder; return its path."""
    path = folder / "shop.sql"
    path.write_text(DUMP, "utf-8")
    return path


def shop_in(folder: Path) -> DatabaseSpec:
    """Write the dump to a folder; return the database `shop` in it, as tasks name it."""
    from intercode.core.types import DatabaseSpec  # tests of the engines run without the product

    return DatabaseSpec("mysql-dump", write_shop(folder), "shop")
