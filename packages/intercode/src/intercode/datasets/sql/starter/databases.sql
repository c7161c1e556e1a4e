-- Two databases of our own for the SQL starter tasks, in MySQL's dialect.

CREATE DATABASE IF NOT EXISTS `allotment` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;
USE `allotment`;

CREATE TABLE `gardener` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(60) NOT NULL,
  `joined` date NOT NULL,
  `email` varchar(80) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `gardener` VALUES
(1,'Amara Osei','2015-03-14','amara@garden.example'),(2,'Ben Whitlock','2017-09-02',NULL),
(3,'Chiara Ferri','2019-04-21','chiara.ferri@mail.example'),
(4,'Dag Lindqvist','2011-06-30','dag@garden.example'),
(5,'Eun-ji Park','2022-02-08','eunji@mail.example'),(6,'Farid Nazari','2020-10-17',NULL),
(7,'Greta O\'Shea','2008-05-05','greta@garden.example'),
(8,'Hiro Tanaka','2023-03-01','hiro@mail.example'),(9,'Ines Duarte','2019-11-09',NULL),
(10,'Jonas Weber','2024-01-20','jonas@garden.example'),
(11,'Kemi Adeyemi','2016-07-12','kemi@mail.example'),(12,'Lars Holm','2024-06-03',NULL);

CREATE TABLE `plot` (
  `id` int NOT NULL AUTO_INCREMENT,
  `section` char(1) NOT NULL,
  `number` int NOT NULL,
  `area_m2` decimal(6,2) NOT NULL,
  `has_tap` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  UNIQUE KEY `place` (`section`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `plot` VALUES
(1,'A',1,124.50,1),(2,'A',2,98.00,0),(3,'A',3,150.25,0),(4,'A',4,75.75,1),(5,'A',5,110.00,0),
(6,'B',1,62.50,0),(7,'B',2,180.00,1),(8,'B',3,90.50,1),(9,'B',4,133.75,0),(10,'B',5,101.25,0),
(11,'C',1,87.00,0),(12,'C',2,145.50,0),(13,'C',3,70.00,1),(14,'C',4,118.25,0);

CREATE TABLE `tenancy` (
  `id` int NOT NULL AUTO_INCREMENT,
  `plot_id` int NOT NULL,
  `gardener_id` int NOT NULL,
  `start_date` date NOT NULL,
  `end_date` date DEFAULT NULL,
  `yearly_rent` decimal(6,2) NOT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `tenancy_plot` FOREIGN KEY (`plot_id`) REFERENCES `plot` (`id`),
  CONSTRAINT `tenancy_gardener` FOREIGN KEY (`gardener_id`) REFERENCES `gardener` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `tenancy` VALUES
(1,1,1,'2015-04-01',NULL,62.00),(2,2,2,'2017-10-01','2021-09-30',48.50),
(3,3,4,'2011-07-01',NULL,75.00),(4,4,3,'2019-05-01',NULL,38.00),
(5,5,7,'2008-06-01','2019-12-31',50.00),(6,5,6,'2020-11-01',NULL,55.00),
(7,6,5,'2022-03-01',NULL,31.50),(8,7,7,'2008-06-01',NULL,90.00),
(9,8,9,'2019-12-01','2023-03-31',45.00),(10,8,8,'2023-04-01',NULL,46.50),
(11,9,11,'2016-08-01',NULL,66.00),(12,2,5,'2022-04-01',NULL,52.00),
(13,10,10,'2024-02-01',NULL,51.00),(14,11,11,'2018-03-01','2020-02-29',43.50),
(15,12,4,'2014-09-01',NULL,72.50),(16,14,1,'2021-05-01','2024-04-30',59.00);

CREATE TABLE `crop` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(40) NOT NULL,
  `family` varchar(40) NOT NULL,
  `days_to_harvest` int DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `crop` VALUES
(1,'Broad bean','Fabaceae',110),(2,'Runner bean','Fabaceae',85),
(3,'Beetroot','Amaranthaceae',75),(4,'Chard','Amaranthaceae',60),
(5,'Courgette','Cucurbitaceae',55),(6,'Pumpkin','Cucurbitaceae',120),
(7,'Garlic','Amaryllidaceae',240),(8,'Leek','Amaryllidaceae',150),(9,'Potato','Solanaceae',100),
(10,'Tomato','Solanaceae',90),(11,'Rhubarb','Polygonaceae',NULL),
(12,'Asparagus','Asparagaceae',NULL),(13,'Kale','Brassicaceae',70),
(14,'Radish','Brassicaceae',28),(15,'Artichoke','Asteraceae',NULL);

CREATE TABLE `planting` (
  `id` int NOT NULL AUTO_INCREMENT,
  `plot_id` int NOT NULL,
  `crop_id` int NOT NULL,
  `sown` date NOT NULL,
  `note` text,
  PRIMARY KEY (`id`),
  CONSTRAINT `planting_plot` FOREIGN KEY (`plot_id`) REFERENCES `plot` (`id`),
  CONSTRAINT `planting_crop` FOREIGN KEY (`crop_id`) REFERENCES `crop` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `planting` VALUES
(1,1,3,'2024-03-11','100% from seed'),(2,1,5,'2024-03-01',NULL),
(3,1,6,'2024-03-22','100% from seed'),(4,1,10,'2024-04-30',NULL),(5,2,4,'2024-05-06','slugs!'),
(6,2,6,'2024-03-28','netted'),(7,2,1,'2024-04-25','companion: marigold'),
(8,2,13,'2024-04-29','companion: marigold'),(9,3,2,'2024-04-13','under glass'),
(10,3,7,'2024-03-24','under glass'),(11,3,14,'2024-04-17','companion: marigold'),
(12,3,8,'2024-05-06','companion: marigold'),(13,4,7,'2024-04-01','under glass'),
(14,4,5,'2024-05-17','under glass'),(15,5,1,'2024-05-18','netted'),
(16,5,12,'2024-03-05','netted'),(17,5,4,'2024-04-04',NULL),
(18,5,14,'2024-05-08','companion: marigold'),(19,6,10,'2024-05-13',NULL),
(20,6,13,'2024-04-05','netted'),(21,6,4,'2024-03-18','netted'),
(22,6,1,'2024-03-29','100% from seed'),(23,7,7,'2024-04-04','companion: marigold'),
(24,7,11,'2024-03-16','companion: marigold'),(25,7,8,'2024-03-31',NULL),
(26,7,1,'2024-04-15',NULL),(27,8,8,'2024-04-20','under glass'),
(28,8,4,'2024-04-09','under glass'),(29,8,10,'2024-04-27','100% from seed'),
(30,8,6,'2024-03-30',NULL),(31,9,11,'2024-04-28','100% from seed'),
(32,9,9,'2024-03-09','companion: marigold'),(33,10,3,'2024-03-07','100% from seed'),
(34,10,2,'2024-04-23','under glass'),(35,10,7,'2024-03-01','slugs!'),
(36,12,10,'2024-03-08',NULL),(37,12,3,'2024-04-27',NULL),(38,12,8,'2024-05-18',NULL),
(39,12,1,'2024-04-11','under glass'),(40,1,1,'2025-03-05','100% from seed'),
(41,1,3,'2025-04-01',NULL),(42,2,1,'2025-04-29','under glass'),(43,2,2,'2025-05-19',NULL),
(44,2,13,'2025-05-03','companion: marigold'),(45,2,5,'2025-04-29','under glass'),
(46,3,2,'2025-05-18','companion: marigold'),(47,3,4,'2025-04-08','slugs!'),
(48,3,12,'2025-04-12',NULL),(49,4,4,'2025-05-15','slugs!'),(50,4,13,'2025-05-23','slugs!'),
(51,5,10,'2025-03-03',NULL),(52,5,2,'2025-03-23','netted'),(53,5,3,'2025-03-13',NULL),
(54,6,10,'2025-04-14',NULL),(55,6,7,'2025-04-03','companion: marigold'),
(56,6,4,'2025-04-16','100% from seed'),(57,6,13,'2025-04-05',NULL),
(58,7,2,'2025-03-27','netted'),(59,7,14,'2025-03-19','netted'),
(60,7,8,'2025-04-23','100% from seed'),(61,7,11,'2025-03-28',NULL),
(62,8,13,'2025-04-22','under glass'),(63,8,6,'2025-05-05',NULL),
(64,8,3,'2025-03-08','under glass'),(65,9,12,'2025-04-15','slugs!'),(66,9,9,'2025-03-28',NULL),
(67,9,6,'2025-03-29',NULL),(68,10,11,'2025-03-02','100% from seed'),
(69,10,1,'2025-05-02','companion: marigold'),(70,10,9,'2025-04-15',NULL),
(71,10,5,'2025-05-06',NULL),(72,12,3,'2025-04-03','100% from seed'),
(73,12,11,'2025-05-21',NULL);

CREATE TABLE `harvest` (
  `id` int NOT NULL AUTO_INCREMENT,
  `planting_id` int NOT NULL,
  `day` date NOT NULL,
  `kg` decimal(6,3) NOT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `harvest_planting` FOREIGN KEY (`planting_id`) REFERENCES `planting` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `harvest` VALUES
(1,2,'2024-04-30',2.916),(2,3,'2024-07-25',2.010),(3,3,'2024-07-30',1.393),
(4,4,'2024-07-27',3.897),(5,6,'2024-07-25',4.428),(6,6,'2024-08-08',6.422),
(7,7,'2024-08-15',0.443),(8,7,'2024-08-24',4.119),(9,8,'2024-07-17',2.027),
(10,8,'2024-07-27',6.055),(11,10,'2024-11-21',6.577),(12,11,'2024-05-18',0.620),
(13,11,'2024-06-04',8.991),(14,11,'2024-05-31',2.214),(15,12,'2024-10-12',5.753),
(16,13,'2024-11-21',3.963),(17,13,'2024-12-07',7.725),(18,13,'2024-12-12',8.188),
(19,14,'2024-07-14',4.402),(20,14,'2024-07-26',0.877),(21,14,'2024-08-05',8.866),
(22,16,'2024-05-05',2.841),(23,16,'2024-05-11',4.960),(24,17,'2024-05-30',8.565),
(25,17,'2024-06-10',7.920),(26,17,'2024-06-21',3.545),(27,18,'2024-06-06',3.214),
(28,18,'2024-06-16',1.847),(29,19,'2024-08-14',5.421),(30,20,'2024-06-20',6.244),
(31,20,'2024-06-19',0.597),(32,21,'2024-05-22',4.721),(33,21,'2024-05-29',5.925),
(34,22,'2024-07-20',1.456),(35,23,'2024-12-04',2.115),(36,23,'2024-12-04',2.977),
(37,24,'2024-05-09',6.189),(38,25,'2024-09-04',1.803),(39,25,'2024-09-07',6.550),
(40,25,'2024-09-24',0.987),(41,26,'2024-08-06',4.086),(42,27,'2024-09-26',7.314),
(43,27,'2024-09-23',5.605),(44,28,'2024-06-08',4.876),(45,31,'2024-06-27',4.290),
(46,31,'2024-07-12',6.471),(47,32,'2024-06-15',0.173),(48,33,'2024-05-20',8.932),
(49,33,'2024-06-02',4.045),(50,33,'2024-06-14',1.184),(51,34,'2024-07-20',6.437),
(52,35,'2024-10-31',6.902),(53,36,'2024-06-12',2.922),(54,36,'2024-06-16',6.735),
(55,36,'2024-06-19',0.969),(56,37,'2024-07-08',5.584),(57,37,'2024-07-28',5.028),
(58,38,'2024-10-09',0.891),(59,39,'2024-07-30',5.438),(60,39,'2024-08-06',7.541),
(61,40,'2025-06-29',3.829),(62,41,'2025-06-14',8.411),(63,41,'2025-06-27',4.093),
(64,41,'2025-06-28',3.959),(65,42,'2025-08-13',8.167),(66,43,'2025-08-20',2.004),
(67,43,'2025-08-23',4.943),(68,44,'2025-07-13',2.649),(69,45,'2025-06-25',7.518),
(70,45,'2025-06-28',7.678),(71,46,'2025-08-12',8.107),(72,46,'2025-08-30',0.972),
(73,46,'2025-08-27',0.423),(74,47,'2025-06-15',5.633),(75,47,'2025-06-15',0.246),
(76,48,'2025-06-09',1.701),(77,48,'2025-06-14',3.578),(78,48,'2025-06-24',2.202),
(79,49,'2025-07-16',6.670),(80,50,'2025-08-08',0.554),(81,50,'2025-08-10',0.746),
(82,50,'2025-08-21',7.808),(83,51,'2025-06-04',6.776),(84,52,'2025-06-11',5.933),
(85,52,'2025-06-20',4.927),(86,53,'2025-06-01',5.395),(87,53,'2025-06-05',0.256),
(88,54,'2025-07-10',5.551),(89,54,'2025-07-19',2.252),(90,55,'2025-11-28',2.106),
(91,55,'2025-12-09',4.545),(92,55,'2025-12-14',4.731),(93,56,'2025-06-20',8.014),
(94,57,'2025-06-23',4.907),(95,59,'2025-04-22',5.311),(96,59,'2025-05-04',7.955),
(97,59,'2025-05-06',6.873),(98,61,'2025-05-22',8.859),(99,62,'2025-07-06',8.768),
(100,63,'2025-08-30',8.804),(101,64,'2025-05-27',5.209),(102,64,'2025-06-08',2.052),
(103,65,'2025-06-11',5.546),(104,65,'2025-06-30',5.982),(105,66,'2025-07-08',3.523),
(106,66,'2025-07-12',2.121),(107,66,'2025-07-15',3.085),(108,67,'2025-08-04',5.913),
(109,67,'2025-08-13',5.875),(110,68,'2025-04-29',3.005),(111,68,'2025-05-08',4.087),
(112,69,'2025-08-22',0.428),(113,69,'2025-08-21',1.053),(114,69,'2025-09-09',5.122),
(115,70,'2025-07-30',7.169),(116,71,'2025-07-06',5.131),(117,71,'2025-07-04',8.715),
(118,71,'2025-07-17',1.574),(119,72,'2025-06-16',2.681),(120,73,'2025-07-16',7.766);

CREATE DATABASE IF NOT EXISTS `ferry` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci */;
USE `ferry`;

CREATE TABLE `port` (
  `code` char(3) NOT NULL,
  `name` varchar(40) NOT NULL,
  `country` varchar(40) NOT NULL,
  `berths` int NOT NULL,
  PRIMARY KEY (`code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `port` VALUES
('ARD','Ardmora','Lowland',4),('BEL','Belfjord','Norrland',6),('CAL','Calder Bay','Lowland',2),
('DUN','Dunmere','Lowland',3),('ESK','Eskholm','Norrland',5),
('FAR','Farsund Quay','Norrland',1),('GUL','Gull Rock','Isle of Gull',1);

CREATE TABLE `ship` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(40) NOT NULL,
  `built` int NOT NULL,
  `capacity` int NOT NULL,
  `retired` date DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `ship` VALUES
(1,'Aurora',1998,420,NULL),(2,'Borealis',2011,780,NULL),(3,'Cormorant',1984,150,'2025-02-28'),
(4,'Dauntless',2019,960,NULL),(5,'Eider',2005,310,NULL),(6,'Fulmar',1979,120,'2019-10-01');

CREATE TABLE `route` (
  `id` int NOT NULL AUTO_INCREMENT,
  `from_port` char(3) NOT NULL,
  `to_port` char(3) NOT NULL,
  `distance_nm` decimal(5,1) NOT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `route_from` FOREIGN KEY (`from_port`) REFERENCES `port` (`code`),
  CONSTRAINT `route_to` FOREIGN KEY (`to_port`) REFERENCES `port` (`code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `route` VALUES
(1,'ARD','BEL',148.5),(2,'BEL','ARD',148.5),(3,'CAL','GUL',12.0),(4,'GUL','CAL',12.0),
(5,'DUN','ESK',96.4),(6,'ESK','DUN',96.4),(7,'ARD','DUN',41.7),(8,'FAR','BEL',63.2);

CREATE TABLE `sailing` (
  `id` int NOT NULL AUTO_INCREMENT,
  `route_id` int NOT NULL,
  `ship_id` int NOT NULL,
  `departs` datetime NOT NULL,
  `minutes_late` int DEFAULT NULL,
  `cancelled` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  CONSTRAINT `sailing_route` FOREIGN KEY (`route_id`) REFERENCES `route` (`id`),
  CONSTRAINT `sailing_ship` FOREIGN KEY (`ship_id`) REFERENCES `ship` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `sailing` VALUES
(1,1,2,'2025-01-04 13:30:00',35,0),(2,2,4,'2025-01-05 06:00:00',NULL,1),
(3,4,3,'2025-01-07 08:15:00',8,0),(4,4,3,'2025-01-08 13:30:00',8,0),
(5,3,3,'2025-01-10 08:15:00',5,0),(6,4,3,'2025-01-10 17:00:00',0,0),
(7,1,4,'2025-01-10 21:30:00',8,0),(8,7,5,'2025-01-13 06:00:00',NULL,1),
(9,3,3,'2025-01-13 06:00:00',0,0),(10,2,4,'2025-01-13 08:30:00',35,0),
(11,2,2,'2025-01-14 21:30:00',35,0),(12,7,1,'2025-01-16 13:00:00',NULL,0),
(13,3,5,'2025-01-23 09:30:00',NULL,0),(14,1,2,'2025-01-24 17:30:00',55,0),
(15,5,4,'2025-01-25 09:30:00',NULL,0),(16,2,2,'2025-02-01 13:15:00',5,0),
(17,2,4,'2025-02-05 13:00:00',3,0),(18,3,3,'2025-02-11 06:30:00',0,0),
(19,5,4,'2025-02-13 08:00:00',12,0),(20,3,5,'2025-02-13 09:30:00',20,0),
(21,5,4,'2025-02-14 06:00:00',3,0),(22,5,1,'2025-02-14 13:00:00',NULL,1),
(23,5,1,'2025-02-14 13:30:00',20,0),(24,5,1,'2025-02-19 06:30:00',35,0),
(25,4,5,'2025-02-24 09:15:00',NULL,1),(26,5,4,'2025-02-28 17:30:00',5,0),
(27,2,4,'2025-03-07 21:00:00',8,0),(28,3,5,'2025-03-11 06:30:00',8,0),
(29,3,5,'2025-03-13 17:15:00',0,0),(30,5,1,'2025-03-15 06:00:00',NULL,1),
(31,1,2,'2025-03-15 06:15:00',0,0),(32,3,5,'2025-03-20 08:00:00',20,0),
(33,5,4,'2025-03-21 13:30:00',0,0),(34,5,1,'2025-03-24 09:00:00',NULL,0),
(35,1,4,'2025-04-02 09:15:00',12,0),(36,1,4,'2025-04-02 13:15:00',20,0),
(37,4,5,'2025-04-08 13:15:00',0,0),(38,3,5,'2025-04-15 21:15:00',8,0),
(39,2,4,'2025-04-18 09:00:00',35,0),(40,4,5,'2025-04-19 17:30:00',5,0),
(41,5,4,'2025-04-20 08:30:00',35,0),(42,2,2,'2025-04-21 17:30:00',55,0),
(43,1,2,'2025-04-23 17:30:00',35,0),(44,4,5,'2025-04-27 17:15:00',0,0);

CREATE TABLE `fare` (
  `sailing_id` int NOT NULL,
  `class` varchar(10) NOT NULL,
  `sold` int NOT NULL,
  `price` decimal(7,2) NOT NULL,
  PRIMARY KEY (`sailing_id`,`class`),
  CONSTRAINT `fare_sailing` FOREIGN KEY (`sailing_id`) REFERENCES `sailing` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `fare` VALUES
(1,'deck',168,44.50),(1,'cabin',53,183.00),(1,'car',65,114.00),(2,'deck',0,44.50),
(2,'cabin',0,183.00),(2,'car',0,114.00),(3,'deck',0,3.50),(4,'deck',0,3.50),(5,'deck',44,3.50),
(6,'deck',2,3.50),(7,'deck',443,44.50),(7,'cabin',7,183.00),(7,'car',93,114.00),
(8,'deck',0,12.50),(8,'cabin',0,51.50),(8,'car',0,32.00),(9,'deck',39,3.50),
(10,'deck',465,44.50),(10,'cabin',68,183.00),(10,'car',78,114.00),(11,'deck',51,44.50),
(11,'cabin',84,183.00),(11,'car',73,114.00),(12,'deck',55,12.50),(12,'cabin',13,51.50),
(12,'car',9,32.00),(13,'deck',13,3.50),(14,'deck',344,44.50),(14,'cabin',75,183.00),
(14,'car',1,114.00),(15,'deck',41,29.00),(15,'cabin',125,119.00),(15,'car',37,74.00),
(16,'deck',324,44.50),(16,'cabin',83,183.00),(16,'car',20,114.00),(17,'deck',423,44.50),
(17,'cabin',17,183.00),(17,'car',93,114.00),(18,'deck',8,3.50),(19,'deck',330,29.00),
(19,'cabin',61,119.00),(19,'car',19,74.00),(20,'deck',56,3.50),(21,'deck',192,29.00),
(21,'cabin',102,119.00),(21,'car',70,74.00),(22,'deck',0,29.00),(22,'cabin',0,119.00),
(22,'car',0,74.00),(23,'deck',128,29.00),(23,'cabin',0,119.00),(23,'car',35,74.00),
(24,'deck',132,29.00),(24,'cabin',10,119.00),(24,'car',40,74.00),(25,'deck',0,3.50),
(26,'deck',92,29.00),(26,'cabin',58,119.00),(26,'car',60,74.00),(27,'deck',396,44.50),
(27,'cabin',34,183.00),(27,'car',30,114.00),(28,'deck',2,3.50),(29,'deck',70,3.50),
(30,'deck',0,29.00),(30,'cabin',0,119.00),(30,'car',0,74.00),(31,'deck',137,44.50),
(31,'cabin',72,183.00),(31,'car',65,114.00),(32,'deck',134,3.50),(33,'deck',442,29.00),
(33,'cabin',136,119.00),(33,'car',76,74.00),(34,'deck',60,29.00),(34,'cabin',36,119.00),
(34,'car',38,74.00),(35,'deck',135,44.50),(35,'cabin',20,183.00),(35,'car',33,114.00),
(36,'deck',71,44.50),(36,'cabin',52,183.00),(36,'car',25,114.00),(37,'deck',33,3.50),
(38,'deck',151,3.50),(39,'deck',477,44.50),(39,'cabin',13,183.00),(39,'car',17,114.00),
(40,'deck',14,3.50),(41,'deck',421,29.00),(41,'cabin',5,119.00),(41,'car',70,74.00),
(42,'deck',21,44.50),(42,'cabin',80,183.00),(42,'car',11,114.00),(43,'deck',19,44.50),
(43,'cabin',111,183.00),(43,'car',7,114.00),(44,'deck',24,3.50);

CREATE TABLE `person` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(40) NOT NULL,
  `licence_until` date DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `person` VALUES
(1,'Ada Brandt','2026-05-01'),(2,'Bram Visser','2025-02-14'),(3,'Cleo Marsh',NULL),
(4,'Dov Katz','2027-01-15'),(5,'Elin Strand','2025-04-30'),(6,'Finn Rourke',NULL),
(7,'Gus Paley','2026-11-30'),(8,'Hana Sato','2028-03-10'),(9,'Ivo Petrov','2025-06-30');

CREATE TABLE `crew` (
  `sailing_id` int NOT NULL,
  `person_id` int NOT NULL,
  `role` varchar(12) NOT NULL,
  PRIMARY KEY (`sailing_id`,`person_id`),
  CONSTRAINT `crew_sailing` FOREIGN KEY (`sailing_id`) REFERENCES `sailing` (`id`),
  CONSTRAINT `crew_person` FOREIGN KEY (`person_id`) REFERENCES `person` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `crew` VALUES
(1,3,'master'),(1,2,'engineer'),(1,1,'engineer'),(1,4,'mate'),(2,8,'master'),(2,7,'steward'),
(2,2,'mate'),(3,8,'master'),(3,2,'engineer'),(4,1,'master'),(4,6,'steward'),(5,1,'master'),
(5,7,'engineer'),(5,5,'engineer'),(5,3,'engineer'),(6,8,'master'),(6,3,'steward'),
(7,7,'master'),(7,1,'engineer'),(8,3,'master'),(8,2,'mate'),(8,4,'engineer'),(9,1,'master'),
(9,7,'engineer'),(9,5,'engineer'),(9,2,'mate'),(10,7,'master'),(10,4,'mate'),(10,1,'engineer'),
(10,6,'engineer'),(11,6,'master'),(11,4,'mate'),(11,2,'mate'),(12,4,'master'),(12,5,'mate'),
(13,8,'master'),(13,5,'engineer'),(13,4,'mate'),(14,4,'master'),(14,2,'engineer'),(14,7,'mate'),
(15,4,'master'),(15,2,'mate'),(15,5,'steward'),(15,1,'steward'),(16,2,'master'),(16,7,'mate'),
(16,6,'mate'),(16,3,'mate'),(17,3,'master'),(17,8,'engineer'),(17,4,'mate'),(18,8,'master'),
(18,2,'engineer'),(18,3,'steward'),(18,4,'mate'),(19,3,'master'),(19,5,'mate'),(20,5,'master'),
(20,1,'mate'),(20,6,'mate'),(21,3,'master'),(21,5,'mate'),(21,4,'mate'),(22,2,'master'),
(22,8,'engineer'),(22,6,'engineer'),(23,7,'master'),(23,2,'mate'),(23,1,'mate'),
(23,6,'engineer'),(24,6,'master'),(24,4,'engineer'),(25,6,'master'),(25,4,'mate'),
(26,7,'master'),(26,4,'mate'),(27,7,'master'),(27,8,'mate'),(28,7,'master'),(28,8,'engineer'),
(28,4,'engineer'),(28,6,'mate'),(29,7,'master'),(29,3,'mate'),(30,5,'master'),(30,4,'steward'),
(30,2,'mate'),(31,4,'master'),(31,2,'mate'),(31,5,'steward'),(31,1,'engineer'),(32,2,'master'),
(32,1,'engineer'),(33,6,'master'),(33,3,'mate'),(34,7,'master'),(34,4,'steward'),
(34,2,'engineer'),(34,1,'mate'),(35,6,'master'),(35,3,'steward'),(36,8,'master'),
(36,1,'steward'),(36,6,'engineer'),(37,8,'master'),(37,2,'engineer'),(38,2,'master'),
(38,3,'steward'),(38,8,'mate'),(38,1,'engineer'),(39,8,'master'),(39,2,'engineer'),
(39,4,'steward'),(40,6,'master'),(40,2,'steward'),(40,1,'engineer'),(41,7,'master'),
(41,5,'engineer'),(42,8,'master'),(42,2,'mate'),(42,5,'steward'),(42,1,'engineer'),
(43,8,'master'),(43,5,'steward'),(44,8,'master'),(44,1,'engineer'),(44,2,'steward'),
(44,5,'engineer');
