-- Outer queries over three released tables, whose text and types are PostgreSQL's.
SELECT k, g, n FROM leaf_1 ORDER BY k, g
SELECT k, sum(n) FROM leaf_1 GROUP BY k ORDER BY 1
SELECT k, avg(n), count(*), min(n), max(n) FROM leaf_1 GROUP BY k ORDER BY k NULLS FIRST
SELECT k, sum(n) * 100.0 / sum(sum(n)) OVER () AS share FROM leaf_1 GROUP BY k ORDER BY k
SELECT k, round(100.0 * n / sum(n) OVER (), 2) FROM leaf_1 ORDER BY n, k
SELECT n / 7, n % 7, n * 2, n - 1, -n FROM leaf_1 ORDER BY 3, k
SELECT g / 2, g % 2, -g / 2, -g % 2, g::smallint / 2::smallint FROM leaf_1 ORDER BY g, k
SELECT n / 2.0, n * 1.5, n + 0.25 FROM leaf_1 ORDER BY n, k
SELECT n::float8 / 3, n::real, sqrt(n::float8) FROM leaf_1 WHERE n >= 0 ORDER BY n, k
SELECT k, sum(n) FILTER (WHERE g > 1), count(*) FILTER (WHERE g IS NULL) FROM leaf_1 GROUP BY k HAVING sum(n) > 10 ORDER BY 1
SELECT k, CASE WHEN sum(n) > 50 THEN 'many' WHEN sum(n) > 10 THEN 'some' ELSE 'few' END FROM leaf_1 GROUP BY k ORDER BY 1
SELECT row_number() OVER (ORDER BY n, k), rank() OVER (ORDER BY g), dense_rank() OVER (ORDER BY g DESC) FROM leaf_1 ORDER BY 1
SELECT n, lag(n) OVER (ORDER BY n, k), lead(n, 2, 0) OVER (ORDER BY n, k) FROM leaf_1 ORDER BY n, k
SELECT n, sum(n) OVER (ORDER BY n, k), avg(n) OVER (ORDER BY n, k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM leaf_1 ORDER BY n, k
SELECT k, n, sum(n) OVER (PARTITION BY k ORDER BY g NULLS FIRST) FROM leaf_1 ORDER BY k, g NULLS FIRST
SELECT first_value(k) OVER w, last_value(k) OVER w, nth_value(k, 2) OVER w FROM leaf_1 WINDOW w AS (ORDER BY n, k) ORDER BY n, k
SELECT ntile(3) OVER (ORDER BY n, k), percent_rank() OVER (ORDER BY n), cume_dist() OVER (ORDER BY n) FROM leaf_1 ORDER BY n, k
SELECT count(*) OVER (PARTITION BY k), n FROM leaf_1 ORDER BY n, k
SELECT sum(n) OVER (ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM leaf_1 WHERE g IS NOT NULL ORDER BY n, k
SELECT sum(n) OVER (ORDER BY g GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) FROM leaf_1 ORDER BY n, k
SELECT DISTINCT k FROM leaf_1 ORDER BY k DESC
SELECT DISTINCT g, k IS NULL FROM leaf_1 ORDER BY 1, 2
SELECT DISTINCT ON (k) k, g, n FROM leaf_1 ORDER BY k, n DESC, g
SELECT * FROM leaf_1 ORDER BY n DESC, k LIMIT 3 OFFSET 1
SELECT k FROM leaf_1 UNION SELECT 'zz' ORDER BY 1
SELECT k, n FROM leaf_1 UNION ALL SELECT 'total', sum(n) FROM leaf_1 ORDER BY 2, 1
SELECT g FROM leaf_1 INTERSECT SELECT 1 ORDER BY 1
SELECT g FROM leaf_1 EXCEPT SELECT 1 ORDER BY 1
SELECT 1 UNION SELECT 2.5 ORDER BY 1
SELECT NULL UNION ALL SELECT 1 ORDER BY 1
SELECT 'a' UNION ALL SELECT NULL ORDER BY 1
VALUES (1, 'a'), (2, NULL) ORDER BY 1
SELECT * FROM (VALUES (1, 2.5), (3, NULL)) v(a, b) ORDER BY a
SELECT a.k, a.n, b.n FROM leaf_1 a JOIN leaf_1 b ON a.k = b.k AND a.g < b.g ORDER BY 1, 2, 3
SELECT a.k, b.d FROM leaf_1 a LEFT JOIN leaf_2 b ON b.n = a.n ORDER BY 1, 2, a.n
SELECT count(*) FROM leaf_1 a CROSS JOIN leaf_2 b
SELECT n, k FROM leaf_1 JOIN (SELECT k, max(g) AS top FROM leaf_1 GROUP BY k) m USING (k) ORDER BY 1, 2
SELECT k, m.top FROM leaf_1 NATURAL JOIN (SELECT k, max(g) AS top FROM leaf_1 GROUP BY k) m ORDER BY 1, 2
SELECT * FROM leaf_1 a FULL JOIN leaf_2 b ON a.n = b.n ORDER BY a.n, b.n, a.k
SELECT k FROM leaf_1 WHERE n > (SELECT avg(n) FROM leaf_1) ORDER BY 1
SELECT k FROM leaf_1 o WHERE n = (SELECT max(n) FROM leaf_1 i WHERE i.k = o.k) ORDER BY 1
SELECT k FROM leaf_1 WHERE g IN (SELECT g FROM leaf_1 WHERE n > 20) ORDER BY k, n
SELECT k FROM leaf_1 WHERE g NOT IN (SELECT 2) ORDER BY k, n
SELECT k FROM leaf_1 o WHERE EXISTS (SELECT FROM leaf_2 i WHERE i.n = o.n) ORDER BY 1
SELECT k FROM leaf_1 WHERE n = ANY (ARRAY[12, 40]) ORDER BY 1
SELECT k FROM leaf_1 WHERE n = ANY ('{12,40}') ORDER BY 1
SELECT k FROM leaf_1 WHERE n <> ALL ('{12,40}') ORDER BY 1, n
SELECT k FROM leaf_1 WHERE (k, g) IN (('a', 1), ('b', 2)) ORDER BY 1
WITH t AS (SELECT k, sum(n) AS s FROM leaf_1 GROUP BY k) SELECT k, s, s / (SELECT sum(s) FROM t) FROM t ORDER BY 1
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT i, i * i FROM r ORDER BY 1
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
SELECT t.k, l.m FROM leaf_1 t, LATERAL (SELECT max(n) AS m FROM leaf_1 u WHERE u.k = t.k) l ORDER BY 1, 2
SELECT t.k, l.m FROM leaf_1 t LEFT JOIN LATERAL (SELECT n AS m FROM leaf_2 u WHERE u.n > t.n ORDER BY n LIMIT 1) l ON true ORDER BY 1, 2
SELECT s, n FROM generate_series(1, 3) s LEFT JOIN leaf_1 ON g = s ORDER BY 1, 2
SELECT generate_series(1, 3)
SELECT * FROM generate_series(10, 1, -4) WITH ORDINALITY ORDER BY 2
SELECT * FROM unnest(ARRAY['x', NULL, 'y']) WITH ORDINALITY AS u(v, i) ORDER BY i
SELECT k, upper(k), length(k), k || '!' || n FROM leaf_1 ORDER BY k, n
SELECT substring('abcdef' from 2 for 3), substr('abcdef', 3), left('abc', 2), right('abc', 2), position('c' in 'abc')
SELECT replace('abc', 'b', 'x'), trim('  a '), ltrim('xxa', 'x'), rtrim('axx', 'x'), lpad('a', 3, '-'), repeat('ab', 2), reverse('abc')
SELECT concat('a', NULL, 1), coalesce(NULL, 'b'), nullif(1, 1), greatest(1, 2.5, NULL), least('a', 'b')
SELECT bit_length(k), chr(g + 195), count(*) FROM leaf_1 WHERE bit_length(k) = 8 OR chr(g) = chr(3) GROUP BY 1, 2 ORDER BY 1, 2
SELECT bit_length('Äbc'), chr(196), chr(NULL)
SELECT chr(0)
SELECT chr(g - 2) FROM leaf_1 ORDER BY n
SELECT chr(1114112)
SELECT split_part('a,b,c', ',', 2), initcap('hello world'), strpos('abc', 'c'), md5('a')
SELECT k LIKE 'a%', k NOT LIKE '_', k ILIKE 'A', 'a%b' LIKE 'a\%b' FROM leaf_1 ORDER BY n, k
SELECT k ~ '^[ab]$', k !~ 'a', k ~* 'A' FROM leaf_1 ORDER BY n, k
SELECT d, n FROM leaf_2 ORDER BY d
SELECT date_trunc('month', d), sum(n) FROM leaf_2 GROUP BY 1 ORDER BY 1
SELECT extract(year FROM d), extract(dow FROM d), date_part('month', d) FROM leaf_2 ORDER BY d
SELECT d + 1, d - 1, d - DATE '2024-01-01', d + interval '1 month' FROM leaf_2 ORDER BY d
SELECT d::timestamp, d::text, to_char(d, 'YYYY-MM') FROM leaf_2 ORDER BY d
SELECT d > '2024-01-15', d BETWEEN '2024-01-01' AND DATE '2024-02-01' FROM leaf_2 ORDER BY d
SELECT timestamp '2024-01-31 10:00' + interval '1 month', interval '1 day' * 3, interval '90 minutes', age(timestamp '2024-03-01', timestamp '2024-01-15')
SELECT timestamptz '2024-01-31 10:00+02', timestamptz '2024-01-31 10:00+02' AT TIME ZONE 'America/New_York'
SELECT to_timestamp(0), timestamptz '2024-01-01 00:00+00'::date, date '2024-01-01'::timestamptz
SELECT * FROM generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') t ORDER BY 1
SELECT p, f, b, n FROM leaf_3 ORDER BY n
SELECT p * n, p / 3, p + 1, p - 0.001, -p, abs(p), p % 2 FROM leaf_3 ORDER BY n
SELECT sum(p), avg(p), min(p), max(p), count(DISTINCT p) FROM leaf_3
SELECT p, sum(n) FROM leaf_3 GROUP BY p ORDER BY p DESC
SELECT DISTINCT p FROM leaf_3 ORDER BY 1
SELECT p > 1, p = 1.5, p = 1.50, p <> 2, p IS DISTINCT FROM 1.5, p IN (1.5, 2) FROM leaf_3 ORDER BY n
SELECT round(p), round(p, 1), trunc(p), ceil(p), floor(p), sign(p) FROM leaf_3 ORDER BY n
SELECT p::int, p::text, p::float8, f::numeric, f::int, n::text, b::text FROM leaf_3 ORDER BY n
SELECT f + 1, f * 2, f / 3, -f, round(f), floor(f), abs(f), f > 0.5, f = 0.1 FROM leaf_3 ORDER BY n
SELECT sum(f), min(f), max(f), avg(f) FROM leaf_3 WHERE f < 100
SELECT power(2, 10), power(2.0, 3), exp(0.0), ln(1.0), log(100.0), mod(7, 3), 2 ^ 3, pi()
SELECT b, NOT b, b AND NULL, b OR NULL, b IS TRUE, b IS NOT FALSE, b IS UNKNOWN FROM leaf_3 ORDER BY n
SELECT bool_and(b), bool_or(b), every(b) FROM leaf_3
SELECT b, count(*) FROM leaf_3 GROUP BY b ORDER BY b
SELECT array_agg(k ORDER BY k), string_agg(k, '-' ORDER BY k DESC) FROM leaf_1
SELECT array_agg(n ORDER BY n), array_agg(g ORDER BY g NULLS FIRST) FROM leaf_1
SELECT array_to_string(ARRAY[1, NULL, 3], ','), array_to_string(ARRAY['a', NULL], ',', '*'), array_length(ARRAY[1, 2], 1), (ARRAY[5, 6])[2], (ARRAY[5, 6])[0]
SELECT ARRAY(SELECT k FROM leaf_1 WHERE k IS NOT NULL ORDER BY k), ARRAY[1, 2] || 3, 0 || ARRAY[1], ARRAY[1] || ARRAY[2]
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM leaf_1
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY f) FROM leaf_3
SELECT k, g, sum(n) FROM leaf_1 GROUP BY ROLLUP (k, g) ORDER BY 1, 2, 3
SELECT k, g, grouping(k, g), sum(n) FROM leaf_1 GROUP BY CUBE (k, g) ORDER BY 3, 1, 2, 4
SELECT k, sum(n) FROM leaf_1 GROUP BY GROUPING SETS ((k), ()) ORDER BY 2, 1
SELECT g AS x, count(*) AS c FROM leaf_1 GROUP BY x ORDER BY c DESC, x
SELECT k AS g, g AS k FROM leaf_1 ORDER BY g, k
SELECT sum(n) AS s FROM leaf_1 ORDER BY s
SELECT g + 1 FROM leaf_1 GROUP BY g + 1 ORDER BY g + 1
SELECT count(DISTINCT k), count(k), count(*), sum(DISTINCT g) FROM leaf_1
SELECT sum(g), avg(g), sum(g::smallint) FROM leaf_1
SELECT x.k, x.c FROM (SELECT k, count(*) AS c FROM leaf_1 GROUP BY k) x WHERE x.c > 1 ORDER BY 1
SELECT * FROM (SELECT * FROM leaf_1 ORDER BY n DESC, k LIMIT 2) AS virtual_table LIMIT 1000
SELECT count(*) FROM (SELECT 1) AS t
SELECT 1 AS "?column?", 'x', NULL, true, 1.10, 1e3, 10000000000, -5
SELECT 1::bigint, 2::smallint, '3'::int, '4.50'::numeric(6,2), 'abc'::varchar(2), 't'::bool, 5::text
SELECT '2024-02-30'::text, date '2024-02-29', '1 day'::interval
SELECT 7 / 0
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT 'abc'::int
SELECT 1 / 0.0
SELECT (SELECT n FROM leaf_1)
SELECT sum(k) FROM leaf_1
SELECT k + 1 FROM leaf_1
SELECT nope FROM leaf_1
SELECT n FROM leaf_1, leaf_2
SELECT k, n FROM leaf_1 GROUP BY k
SELECT width_bucket(5.35, 0.024, 10.06, 5), width_bucket(n, 0, 100, 4) FROM leaf_1 ORDER BY n, k
SELECT stddev(n), variance(g) FROM leaf_1
SELECT mode() WITHIN GROUP (ORDER BY g) FROM leaf_1
SELECT corr(n, g) FROM leaf_1
SELECT max(k), min(k) FROM leaf_1
SELECT max(d) - min(d), max(d) FROM leaf_2
SELECT k, max(n) - min(n) AS spread FROM leaf_1 GROUP BY k ORDER BY spread DESC, k
SELECT to_char(n, '999,999'), to_char(1234.5, 'FM9999.00') FROM leaf_1 ORDER BY n, k
SELECT overlay('abcdef' placing 'X' from 2 for 2), chr(65), ascii('A'), quote_literal('a''b'), quote_ident('Select')
SELECT regexp_replace('abc', 'b', 'x'), translate('abc', 'ab', 'xy'), starts_with('abc', 'a'), regexp_like('abc', 'B', 'i')
SELECT json_build_object('k', k, 'n', n) FROM leaf_1 ORDER BY n, k
SELECT k COLLATE "C" FROM leaf_1 ORDER BY k COLLATE "C" DESC
SELECT n FROM leaf_1 ORDER BY n + 0, k FETCH FIRST 2 ROWS ONLY
SELECT n FROM leaf_1 ORDER BY k USING <
SELECT coalesce(k, 'none') AS k, sum(n) FROM leaf_1 GROUP BY 1 ORDER BY 1
SELECT coalesce(k, 'none') AS label, sum(n) FROM leaf_1 GROUP BY label ORDER BY label
SELECT n BETWEEN 10 AND 20, n NOT BETWEEN SYMMETRIC 20 AND 10 FROM leaf_1 ORDER BY n, k
SELECT CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2.5 END FROM leaf_1 ORDER BY n, k
SELECT CASE WHEN n = 0 THEN NULL ELSE 100 / n END FROM leaf_1 WHERE n <> 0 ORDER BY n, k
SELECT nullif(n, 12) / 2 FROM leaf_1 ORDER BY n, k
SELECT a.* FROM leaf_1 a ORDER BY a.n, a.k LIMIT 1
SELECT a.k AS x, a.k AS x FROM leaf_1 a ORDER BY a.n, a.k LIMIT 1
SELECT string_agg(DISTINCT k, ',') FROM leaf_1 WHERE k = 'a'
SELECT sum(n) FILTER (WHERE k = 'a') OVER (PARTITION BY g) FROM leaf_1 ORDER BY n, k
SELECT cast(n AS numeric(10,1)), cast(p AS numeric(4,0)) FROM leaf_1 JOIN leaf_3 USING (n) ORDER BY n
SELECT n::numeric / 3 * 3 = n, (n / 3.0)::numeric(10,4) FROM leaf_1 ORDER BY n, k
SELECT least(p, 2), greatest(p, 1.5) FROM leaf_3 ORDER BY n
SELECT p FROM leaf_3 WHERE p > 1 AND p < 10 ORDER BY p
SELECT (p * 2)::int8 AS twice, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT round(p / 3, 3) AS third, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT p / 3 AS third, count(*) FROM leaf_3 GROUP BY 1 ORDER BY 1
SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1 FROM leaf_1 WHERE false), ARRAY[1]::text[], '{}'::int[]
SELECT date_trunc('day', timestamptz '2024-01-31 10:00+02'), extract(hour FROM timestamp '2024-01-01 13:14:15.5'), extract(epoch FROM interval '1 day')
SELECT d, sum(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM leaf_2 ORDER BY d
SELECT d, n - lag(n) OVER (ORDER BY d) AS change, round(100.0 * (n - lag(n) OVER (ORDER BY d)) / nullif(lag(n) OVER (ORDER BY d), 0), 1) FROM leaf_2 ORDER BY d
SELECT t.d::date, coalesce(sum(l.n), 0) FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-04', interval '1 day') AS t(d) LEFT JOIN leaf_2 l ON l.d = t.d::date GROUP BY 1 ORDER BY 1
SELECT k FROM leaf_1 WHERE n IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 270, 271, 272, 273, 274, 275, 276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287, 288, 289, 290, 291, 292, 293, 294, 295, 296, 297, 298, 299, 300, 301, 302, 303, 304, 305, 306, 307, 308, 309, 310, 311, 312, 313, 314, 315, 316, 317, 318, 319, 320, 321, 322, 323, 324, 325, 326, 327, 328, 329, 330, 331, 332, 333, 334, 335, 336, 337, 338, 339, 340, 341, 342, 343, 344, 345, 346, 347, 348, 349, 350, 351, 352, 353, 354, 355, 356, 357, 358, 359, 360, 361, 362, 363, 364, 365, 366, 367, 368, 369, 370, 371, 372, 373, 374, 375, 376, 377, 378, 379, 380, 381, 382, 383, 384, 385, 386, 387, 388, 389, 390, 391, 392, 393, 394, 395, 396, 397, 398, 399, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 419, 420, 421, 422, 423, 424, 425, 426, 427, 428, 429, 430, 431, 432, 433, 434, 435, 436, 437, 438, 439, 440, 441, 442, 443, 444, 445, 446, 447, 448, 449, 450, 451, 452, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462, 463, 464, 465, 466, 467, 468, 469, 470, 471, 472, 473, 474, 475, 476, 477, 478, 479, 480, 481, 482, 483, 484, 485, 486, 487, 488, 489, 490, 491, 492, 493, 494, 495, 496, 497, 498, 499, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 512, 513, 514, 515, 516, 517, 518, 519, 520, 521, 522, 523, 524, 525, 526, 527, 528, 529, 530, 531, 532, 533, 534, 535, 536, 537, 538, 539, 540, 541, 542, 543, 544, 545, 546, 547, 548, 549, 550, 551, 552, 553, 554, 555, 556, 557, 558, 559, 560, 561, 562, 563, 564, 565, 566, 567, 568, 569, 570, 571, 572, 573, 574, 575, 576, 577, 578, 579, 580, 581, 582, 583, 584, 585, 586, 587, 588, 589, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599, 600, 601, 602, 603, 604, 605, 606, 607, 608, 609, 610, 611, 612, 613, 614, 615, 616, 617, 618, 619, 620, 621, 622, 623, 624, 625, 626, 627, 628, 629, 630, 631, 632, 633, 634, 635, 636, 637, 638, 639, 640, 641, 642, 643, 644, 645, 646, 647, 648, 649, 650, 651, 652, 653, 654, 655, 656, 657, 658, 659, 660, 661, 662, 663, 664, 665, 666, 667, 668, 669, 670, 671, 672, 673, 674, 675, 676, 677, 678, 679, 680, 681, 682, 683, 684, 685, 686, 687, 688, 689, 690, 691, 692, 693, 694, 695, 696, 697, 698, 699, 700, 701, 702, 703, 704, 705, 706, 707, 708, 709, 710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720, 721, 722, 723, 724, 725, 726, 727, 728, 729, 730, 731, 732, 733, 734, 735, 736, 737, 738, 739, 740, 741, 742, 743, 744, 745, 746, 747, 748, 749, 750, 751, 752, 753, 754, 755, 756, 757, 758, 759, 760, 761, 762, 763, 764, 765, 766, 767, 768, 769, 770, 771, 772, 773, 774, 775, 776, 777, 778, 779, 780, 781, 782, 783, 784, 785, 786, 787, 788, 789, 790, 791, 792, 793, 794, 795, 796, 797, 798, 799, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810, 811, 812, 813, 814, 815, 816, 817, 818, 819, 820, 821, 822, 823, 824, 825, 826, 827, 828, 829, 830, 831, 832, 833, 834, 835, 836, 837, 838, 839, 840, 841, 842, 843, 844, 845, 846, 847, 848, 849, 850, 851, 852, 853, 854, 855, 856, 857, 858, 859, 860, 861, 862, 863, 864, 865, 866, 867, 868, 869, 870, 871, 872, 873, 874, 875, 876, 877, 878, 879, 880, 881, 882, 883, 884, 885, 886, 887, 888, 889, 890, 891, 892, 893, 894, 895, 896, 897, 898, 899, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916, 917, 918, 919, 920, 921, 922, 923, 924, 925, 926, 927, 928, 929, 930, 931, 932, 933, 934, 935, 936, 937, 938, 939, 940, 941, 942, 943, 944, 945, 946, 947, 948, 949, 950, 951, 952, 953, 954, 955, 956, 957, 958, 959, 960, 961, 962, 963, 964, 965, 966, 967, 968, 969, 970, 971, 972, 973, 974, 975, 976, 977, 978, 979, 980, 981, 982, 983, 984, 985, 986, 987, 988, 989, 990, 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1016, 1017, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 1026, 1027, 1028, 1029, 1030, 1031, 1032, 1033, 1034, 1035, 1036, 1037, 1038, 1039, 1040, 1041, 1042, 1043, 1044, 1045, 1046, 1047, 1048, 1049, 1050, 1051, 1052, 1053, 1054, 1055, 1056, 1057, 1058, 1059, 1060, 1061, 1062, 1063, 1064, 1065, 1066, 1067, 1068, 1069, 1070, 1071, 1072, 1073, 1074, 1075, 1076, 1077, 1078, 1079, 1080, 1081, 1082, 1083, 1084, 1085, 1086, 1087, 1088, 1089, 1090, 1091, 1092, 1093, 1094, 1095, 1096, 1097, 1098, 1099, 1100, 1101, 1102, 1103, 1104, 1105, 1106, 1107, 1108, 1109, 1110, 1111, 1112, 1113, 1114, 1115, 1116, 1117, 1118, 1119, 1120, 1121, 1122, 1123, 1124, 1125, 1126, 1127, 1128, 1129, 1130, 1131, 1132, 1133, 1134, 1135, 1136, 1137, 1138, 1139, 1140, 1141, 1142, 1143, 1144, 1145, 1146, 1147, 1148, 1149, 1150, 1151, 1152, 1153, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1162, 1163, 1164, 1165, 1166, 1167, 1168, 1169, 1170, 1171, 1172, 1173, 1174, 1175, 1176, 1177, 1178, 1179, 1180, 1181, 1182, 1183, 1184, 1185, 1186, 1187, 1188, 1189, 1190, 1191, 1192, 1193, 1194, 1195, 1196, 1197, 1198, 1199, 1200, 1201, 1202, 1203, 1204, 1205, 1206, 1207, 1208, 1209, 1210, 1211, 1212, 1213, 1214, 1215, 1216, 1217, 1218, 1219, 1220, 1221, 1222, 1223, 1224, 1225, 1226, 1227, 1228, 1229, 1230, 1231, 1232, 1233, 1234, 1235, 1236, 1237, 1238, 1239, 1240, 1241, 1242, 1243, 1244, 1245, 1246, 1247, 1248, 1249, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258, 1259, 1260, 1261, 1262, 1263, 1264, 1265, 1266, 1267, 1268, 1269, 1270, 1271, 1272, 1273, 1274, 1275, 1276, 1277, 1278, 1279, 1280, 1281, 1282, 1283, 1284, 1285, 1286, 1287, 1288, 1289, 1290, 1291, 1292, 1293, 1294, 1295, 1296, 1297, 1298, 1299, 1300, 1301, 1302, 1303, 1304, 1305, 1306, 1307, 1308, 1309, 1310, 1311, 1312, 1313, 1314, 1315, 1316, 1317, 1318, 1319, 1320, 1321, 1322, 1323, 1324, 1325, 1326, 1327, 1328, 1329, 1330, 1331, 1332, 1333, 1334, 1335, 1336, 1337, 1338, 1339, 1340, 1341, 1342, 1343, 1344, 1345, 1346, 1347, 1348, 1349, 1350, 1351, 1352, 1353, 1354, 1355, 1356, 1357, 1358, 1359, 1360, 1361, 1362, 1363, 1364, 1365, 1366, 1367, 1368, 1369, 1370, 1371, 1372, 1373, 1374, 1375, 1376, 1377, 1378, 1379, 1380, 1381, 1382, 1383, 1384, 1385, 1386, 1387, 1388, 1389, 1390, 1391, 1392, 1393, 1394, 1395, 1396, 1397, 1398, 1399, 1400, 1401, 1402, 1403, 1404, 1405, 1406, 1407, 1408, 1409, 1410, 1411, 1412, 1413, 1414, 1415, 1416, 1417, 1418, 1419, 1420, 1421, 1422, 1423, 1424, 1425, 1426, 1427, 1428, 1429, 1430, 1431, 1432, 1433, 1434, 1435, 1436, 1437, 1438, 1439, 1440, 1441, 1442, 1443, 1444, 1445, 1446, 1447, 1448, 1449, 1450, 1451, 1452, 1453, 1454, 1455, 1456, 1457, 1458, 1459, 1460, 1461, 1462, 1463, 1464, 1465, 1466, 1467, 1468, 1469, 1470, 1471, 1472, 1473, 1474, 1475, 1476, 1477, 1478, 1479, 1480, 1481, 1482, 1483, 1484, 1485, 1486, 1487, 1488, 1489, 1490, 1491, 1492, 1493, 1494, 1495, 1496, 1497, 1498, 1499) ORDER BY 1
SELECT k FROM leaf_1 WHERE n IN (12, 7.0) AND k NOT IN ('x', 'b') ORDER BY 1
SELECT n IN (12, NULL), n NOT IN (12, NULL) FROM leaf_1 ORDER BY n, k
SELECT k, (SELECT sum(n) FROM leaf_1 i WHERE i.k = o.k) FROM leaf_1 o GROUP BY k ORDER BY 1
SELECT t.k, s.c FROM (SELECT k, count(*) AS c FROM leaf_1 GROUP BY 1) s RIGHT JOIN (SELECT DISTINCT k FROM leaf_1) t ON s.k = t.k ORDER BY 1
SELECT n, n::text || '%', n::float8 / 7, (n / 7.0)::float8 FROM leaf_1 ORDER BY n, k
SELECT max(share) FROM (SELECT 1.0 * n / sum(n) OVER () AS share FROM leaf_1) x
SELECT k, avg(s) FROM (SELECT k, g, sum(n) AS s FROM leaf_1 GROUP BY k, g) x GROUP BY k HAVING avg(s) > 5 ORDER BY avg(s) DESC
SELECT sum(avg) FROM (SELECT avg(n) FROM leaf_1 GROUP BY k) x
SELECT extract(year FROM d)::int AS y, to_char(d, 'Mon'), count(*) FROM leaf_2 GROUP BY 1, 2 ORDER BY 1, 2
SELECT 100 * n / nullif(sum(n) OVER (), 0) || ' %' FROM leaf_1 ORDER BY n, k
SELECT pg_typeof(n), pg_typeof(sum(n)) FROM leaf_1 GROUP BY n ORDER BY n
SELECT (ARRAY[1,2,3,4])[2:3], (ARRAY[1,2,3])[:2], (ARRAY[1,2,3])[2:], (ARRAY['a','b'])[:], (ARRAY[1,2,3])[0:1], (ARRAY[1,2,3])[3:2], (ARRAY[1,2,3])[-2:-1], (ARRAY[1,2,3])[2:9]
SELECT (ARRAY[1,2,3])[NULL:2], (ARRAY[1,2,3])[2:NULL], (ARRAY[1,2,3])[1:n::int] FROM leaf_1 ORDER BY n, k
SELECT (string_to_array('a.b.c', '.'))[2:3], array_length((ARRAY[1,2,3])[2:], 1)
SELECT scale(p), scale(p * 2.500) FROM leaf_3 ORDER BY n
SELECT trim_scale(p), trim_scale(p * 2.500), min_scale(p * 2.500), trim_scale(n), trim_scale(avg(n) OVER ()) FROM leaf_3 ORDER BY n
SELECT (ARRAY[1,2,3])[1:2][1]
SELECT json_agg(n ORDER BY n), json_agg(k ORDER BY n, k), json_agg(k) FILTER (WHERE false) FROM leaf_1
SELECT g, json_object_agg(k || g, n ORDER BY n) FROM leaf_1 WHERE k IS NOT NULL GROUP BY g ORDER BY g
SELECT json_object_agg(k, n) FROM leaf_1
SELECT json_object_agg(b, p ORDER BY n), json_agg(b ORDER BY n), json_agg(p ORDER BY n) FROM leaf_3 WHERE b IS NOT NULL
SELECT json_agg(d ORDER BY d), json_object_agg(d, n ORDER BY d) FROM leaf_2
SELECT json_agg(n) OVER (PARTITION BY g) FROM leaf_1 WHERE k = 'a' ORDER BY n
SELECT t FROM generate_series(timestamptz '2024-01-31 00:00+00', timestamptz '2024-04-01 00:00+00', interval '1 month') AS t
SELECT count(*), max(t) FROM generate_series(timestamptz '2024-03-30 00:00+00', timestamptz '2024-04-02 00:00+00', interval '6 hours') AS g(t)
SELECT t FROM generate_series(timestamptz '2024-01-03', timestamptz '2024-01-01', interval '-1 day') AS t
SELECT count(*) FROM generate_series(timestamptz '2024-01-03', timestamptz '2024-01-01', interval '1 day') AS t
SELECT count(*) FROM generate_series(timestamptz '2024-01-03', NULL, interval '1 day') AS t
SELECT count(*) FROM generate_series(timestamptz '2024-01-03', timestamptz '2024-01-01', interval '0') AS t
SELECT t::date, coalesce(sum(l.n), 0) FROM generate_series('2024-01-01'::timestamptz, '2024-01-04'::timestamptz, '1 day') AS t LEFT JOIN leaf_2 l ON l.d = t::date GROUP BY 1 ORDER BY 1
SELECT parse_ident('a'), parse_ident(' A . "B""b" . c$1 '), (parse_ident('"Public".people'))[1], parse_ident(NULL), array_length(parse_ident('x.y.z'), 1)
SELECT parse_ident('')
SELECT parse_ident('a.')
SELECT parse_ident('a b')
SELECT parse_ident('"a')
SELECT parse_ident('"".a')
SELECT parse_ident('1a')
SELECT parse_ident('Ä.ß')
SELECT i, quote_ident(i) FROM unnest(parse_ident('"a b".c')) AS i

-- substring and regexp_match by a pattern
SELECT substring('fillfactor=70,autovacuum_enabled=false' FROM 'fillfactor=([0-9]*)'), substring('a=1.5x' from '[0-9]*[.]?[0-9]+'), substring('WHEN (x) EXECUTE FUNCTION' from 'WHEN (.*) EXECUTE (PROCEDURE|FUNCTION)'), substring('abc' from 'z'), substring('abc' from 2), substring(NULL from 'a')
SELECT regexp_match('foo=12;bar=7', 'foo=([0-9]+);(b[a-z]*)'), regexp_match('abc', 'b'), regexp_match('abc', 'x'), regexp_match('aab', 'a*b?')
SELECT row_to_json(t) FROM (SELECT 1 AS "Total", 'x"y' AS b, NULL::int AS c, true AS d, 1.50 AS e) t
SELECT row_to_json(t) FROM (SELECT k, n FROM leaf_1) t WHERE n > 20 ORDER BY n
SELECT to_char(timestamptz '2024-07-01 12:00+00', 'YYYY-MM-DD HH24:MI:SS TZ'), to_char(timestamptz '2024-01-01 12:00+00', 'HH24 tz')
SELECT DISTINCT a.k, a.g + 1 FROM leaf_1 a ORDER BY a.k, a.g + 1 DESC
SELECT DISTINCT a.k AS x FROM leaf_1 a ORDER BY a.g
SELECT a.k, b.n FROM leaf_1 a LEFT JOIN leaf_1 b ON b.k = a.k AND b.n = (SELECT max(c.n) FROM leaf_1 c) ORDER BY 1, 2
SELECT a.k, b.n FROM leaf_1 a LEFT JOIN leaf_1 AS b ON b.k = a.k AND b.n IN (SELECT max(c.n) FROM leaf_1 c WHERE c.g = a.g) ORDER BY 1, 2
SELECT a.n, d.n FROM leaf_1 a LEFT JOIN (SELECT k, n FROM leaf_1 WHERE n > 0) d ON EXISTS (SELECT 1 FROM leaf_2 c WHERE c.n = d.n) AND d.k = a.k ORDER BY 1, 2

-- answered: from here on a refusal is a fault. Patterns that have a type, as those that come as parameters do
SELECT k ~ '^[ab]$'::text, k !~ CAST('a' AS varchar), k ~* '''|A'::text, 'it''s' ~ '''s$'::text, 'x' ~ NULL::text, k OPERATOR(pg_catalog.~) '^(b)$'::text COLLATE pg_catalog.default, substring('a=7' FROM '[0-9]+'::text) FROM leaf_1 ORDER BY n, k
-- names of a row's parts, which a tool has quoted
SELECT ('"pg_catalog"."' || t || '"')::regtype::text FROM (VALUES ('int4'), ('timestamptz'), ('text'), ('_int4')) AS v(t)
SELECT (quote_ident(s) || '.' || quote_ident(r))::regclass::oid, (s || '.' || r)::regclass::text FROM (VALUES ('pg_catalog', 'pg_class'), ('pg_catalog', 'pg_type')) AS v(s, r)
SELECT (quote_ident(current_database()) || '.' || quote_ident(s) || '.' || quote_ident(r))::regclass::oid FROM (VALUES ('pg_catalog', 'pg_class')) AS v(s, r)
SELECT ('"pg_catalog"."' || t || '"')::regtype::text FROM (VALUES ('no_type')) AS v(t)
-- shifts, as jOOQ's code generator reads modifiers
SELECT (-8) >> 1, 1703937 >> 16, (7::smallint >> 1), (-7::smallint) >> 20, 5::bigint >> 40, (-5)::bigint >> 65, 9 >> 33, 9 >> (-1), n >> 1, '9' >> 1 FROM leaf_1 ORDER BY n, k
SELECT 1 >> 2::bigint
SELECT (-7) >> 2::smallint, 1 >> 2::int8::int4
SELECT pg_typeof(7::smallint >> 1), pg_typeof(7::bigint >> 1), NULL >> 1, 1 >> NULL
-- indexes, of which there are none
SELECT i.indoption::int[] AS asc_or_desc, array(SELECT pg_get_indexdef(i.indexrelid, k + 1, true) FROM generate_subscripts(i.indkey, 1) AS k ORDER BY k) AS columns FROM pg_catalog.pg_index AS i WHERE i.indrelid = 0
SELECT NULL::int2vector::int[]
-- character(n), whose blanks at its end say nothing
SELECT bpchar('1'::"char") = '1'::bpchar, 'a  '::char(3) = 'a', 'a'::bpchar = 'a '::bpchar, 'a '::char(2) = 'a '::text, 'a'::char(3) <> 'a '::varchar, 'a '::bpchar < 'a'::bpchar, 'ab'::char = 'a', 'x'::char IN ('x', 'y '), NULL::bpchar = 'a'
SELECT 'm'::"char" = 'm '::char(2), 'ab'::name = 'ab '::bpchar, 'ab '::bpchar = 'ab '::text
SELECT 'a'::char(3), 'abcde'::char(3), 'a '::char(3)::text || '|', 'a'::char(3) || '|', concat('a'::char(3), '|'), format('%s|', 'a'::char(3)), length('a'::char(3)), upper('a'::char(3)) || '|', 'a '::bpchar, n::char(4), 12::bpchar, true::char(5), ('12 '::char(4))::int, 'äöü'::char(2) FROM leaf_1 ORDER BY n, k
SELECT pg_typeof('a'::char(3)), pg_typeof(bpchar(k)), bpchar(k)::varchar(1), text(k), k::char(2) LIKE 'a ', k::char(2) ~ 'a $', text(n) FROM leaf_1 ORDER BY n, k
SELECT DISTINCT k::char(3)::bpchar = 'b', count(*) FROM leaf_1 GROUP BY k::char(3) ORDER BY 2, 1
SELECT string_agg(k::char(3), ',' ORDER BY n), array_to_string(ARRAY['a'::char(2), NULL, 'b'], ','), array_to_string(ARRAY[true, NULL, false], ',', 'n') FROM leaf_1
SELECT row_to_json(t) FROM (SELECT 'a'::char(3) AS c) t
-- distinct elements are sorted
SELECT array_agg(DISTINCT k), array_agg(DISTINCT g), array_agg(DISTINCT n), array_agg(DISTINCT k) FILTER (WHERE n > 100), array_agg(DISTINCT k ORDER BY k DESC) FROM leaf_1
SELECT g, array_agg(DISTINCT k) FROM leaf_1 GROUP BY g ORDER BY g
-- an array beside NULL, and numbers of several widths
SELECT '{ a, "b c" , NULL, " d" }'::text[], '{ }'::int[], '{ 1 , 2 }'::int2[]
SELECT ARRAY['a'] AS x UNION ALL SELECT NULL
SELECT NULL AS x UNION ALL SELECT ARRAY[1, 2] UNION ALL SELECT NULL
SELECT 70000::oid = ANY('{1,2}'::int2[]), 2::oid = ANY('{1,2}'::int2[]), 70000 = ANY('{1}'::int2[]), 7000000000 = ANY('{1}'::int4[]), 1::int2 = ANY('{1}'::int8[]), 1 <> ALL('{2,3}'::int8[]), NULL::oid = ANY('{1}'::int2[])
-- what tools ask of triggers, rules and functions
SELECT encode(NULL::bytea, 'escape'), (string_to_array(encode(NULL::bytea, 'escape'), E'\\000')::text[])[1:2]
SELECT oidvectortypes('23 25 1042 1009'::oidvector), oidvectortypes(''::oidvector), oidvectortypes(NULL), oidvectortypes('1043 1184'::oidvector)
SELECT CASE WHEN n > 20 THEN 'a'::varchar(1) ELSE 'bcd' END, CASE WHEN n > 20 THEN 1.5::numeric(3,1) ELSE '1.555' END, ARRAY['a'::char(2), 'bcd'] FROM leaf_1 ORDER BY n, k
-- chars: leaf_4 has c character(3), c5 character(5), v varchar(8) and t text
SELECT c, c5, v, t, n FROM leaf_4 ORDER BY n
SELECT c FROM leaf_4 ORDER BY c, n
SELECT c FROM leaf_4 ORDER BY c DESC NULLS LAST, n
SELECT c, n FROM leaf_4 WHERE c = 'ab  ' OR c = 'x'
SELECT c, n FROM leaf_4 WHERE c IN ('ab', 'x ', 'zz ') ORDER BY n
SELECT n FROM leaf_4 WHERE c <> 'ab     ' ORDER BY n
SELECT n FROM leaf_4 WHERE c >= 'ab ' AND c < 'abc' ORDER BY n
SELECT n FROM leaf_4 WHERE c BETWEEN 'ab ' AND 'abc ' ORDER BY n
SELECT n FROM leaf_4 WHERE c = t ORDER BY n
SELECT n FROM leaf_4 WHERE c = v ORDER BY n
SELECT n FROM leaf_4 WHERE c = c5 ORDER BY n
SELECT n FROM leaf_4 WHERE c = 'ab '::text ORDER BY n
SELECT n FROM leaf_4 WHERE c = 'ab '::varchar ORDER BY n
SELECT n FROM leaf_4 WHERE c IS DISTINCT FROM 'ab ' ORDER BY n
SELECT n FROM leaf_4 WHERE c = ANY ('{"ab  ",x}') ORDER BY n
SELECT n FROM leaf_4 WHERE c = ANY ('{"ab ",x}'::text[]) ORDER BY n
SELECT n FROM leaf_4 WHERE c <> ALL ('{"ab ",x}'::bpchar[]) ORDER BY n
SELECT n FROM leaf_4 WHERE v = ANY ('{"ab    ",x}'::bpchar[]) ORDER BY n
SELECT n FROM leaf_4 WHERE c = ANY (ARRAY['ab ', 'x']) ORDER BY n
SELECT n FROM leaf_4 WHERE v IN (SELECT c FROM leaf_4) ORDER BY n
SELECT n FROM leaf_4 WHERE t IN (SELECT c FROM leaf_4) ORDER BY n
SELECT n FROM leaf_4 WHERE c IN (SELECT v FROM leaf_4) ORDER BY n
SELECT n FROM leaf_4 WHERE c IN (SELECT t FROM leaf_4) ORDER BY n
SELECT n FROM leaf_4 WHERE c5 IN (SELECT c FROM leaf_4) ORDER BY n
SELECT n FROM leaf_4 WHERE (c, n) IN (SELECT c5, n FROM leaf_4) ORDER BY n
SELECT a.n, b.n FROM leaf_4 a JOIN leaf_4 b ON a.c = b.c5 ORDER BY 1, 2
SELECT a.n, b.n FROM leaf_4 a JOIN leaf_4 b ON a.c = b.v ORDER BY 1, 2
SELECT a.n, b.n FROM leaf_4 a JOIN leaf_4 b ON a.c = b.t ORDER BY 1, 2
SELECT c, a.n, b.n FROM leaf_4 a JOIN leaf_4 b USING (c) ORDER BY 2, 3
SELECT c, a.n FROM leaf_4 a JOIN (SELECT c5 AS c FROM leaf_4) b USING (c) ORDER BY 2
SELECT c, a.n FROM leaf_4 a LEFT JOIN (SELECT v AS c FROM leaf_4) b USING (c) ORDER BY 2
SELECT n, length(c), char_length(c), octet_length(c), bit_length(c), c || '|', '|' || c || c5, concat(c, '|'), concat_ws('-', c, v, c5), c::text || '|', lower(c), left(c, 2), right(c, 1), rtrim(c) || '|', rpad(c, 4, '.'), lpad(c, 4, '.'), reverse(c), md5(c), substr(c, 2), position('b' IN c), strpos(c, ' '), replace(c, ' ', '_'), translate(c, ' ', '_') FROM leaf_4 ORDER BY n
SELECT n, c LIKE 'ab', c LIKE 'ab ', c LIKE 'ab%', c LIKE '__ ', c ILIKE 'AB ', c NOT LIKE 'x', 'ab' LIKE c, c ~ '^ab$', c ~ ' $', c !~ 'b ', c ~* 'B $', c SIMILAR TO 'ab ', c LIKE c5, c LIKE t, starts_with(c, 'a'), c ^@ 'ab ' FROM leaf_4 ORDER BY n
SELECT n, regexp_replace(c, ' ', '_', 'g'), substring(c FROM ' $'), regexp_match(c, ' $'), regexp_split_to_array(c, ' '), split_part(c, ' ', 1), substring(c FROM 1 FOR 3) || '|' FROM leaf_4 ORDER BY n
SELECT n, c::varchar || '|', c::text = 'ab', c::char(2) || '|', c::char(2), c::char(4), c::bpchar, octet_length(c::char(4)), c::varchar(2), c::name FROM leaf_4 ORDER BY n
SELECT n, quote_literal(c), quote_ident(c), format('%s|%L', c, c), json_build_object('k', c) FROM leaf_4 ORDER BY n
SELECT n, coalesce(c, 'none'), coalesce(c, 'none ') || '|', coalesce(c, v), coalesce(v, c), coalesce(t, c), coalesce(c, c5), octet_length(coalesce(c, 'x')), coalesce(c, 'x') = 'x  ', coalesce(c, 'x') LIKE 'x' FROM leaf_4 ORDER BY n
SELECT n, CASE WHEN n > 7 THEN c END, CASE WHEN n > 7 THEN c ELSE c5 END, CASE WHEN n > 7 THEN c ELSE 'no ' END, CASE c WHEN 'ab  ' THEN 1 WHEN 'x' THEN 2 END, CASE c WHEN t THEN 1 END, CASE WHEN n > 7 THEN v ELSE c END FROM leaf_4 ORDER BY n
SELECT n, nullif(c, 'ab   '), nullif(c, v), nullif(v, c), nullif(c, t), nullif(t, c), nullif('ab', c), nullif(c, c5) FROM leaf_4 ORDER BY n
SELECT c, count(*) FROM leaf_4 GROUP BY c ORDER BY 2, 1
SELECT c5, sum(n) FROM leaf_4 GROUP BY 1 ORDER BY 1
SELECT c, sum(n) FROM leaf_4 GROUP BY c HAVING c = 'ab ' OR c > 'b' ORDER BY 1
SELECT c, sum(n) FROM leaf_4 GROUP BY ROLLUP (c) ORDER BY 1, 2
SELECT DISTINCT c5 FROM leaf_4 ORDER BY 1
SELECT DISTINCT ON (c5) c5, n FROM leaf_4 ORDER BY c5, n
SELECT count(DISTINCT c5), count(c), count(DISTINCT v::bpchar), min(c), max(c), max(c5) FILTER (WHERE n < 20), min(v), string_agg(c, ',' ORDER BY n), array_agg(c ORDER BY n), array_agg(c5 ORDER BY c5, n) FROM leaf_4
SELECT max(c) = 'x', max(c) || '|', octet_length(max(c5)) FROM leaf_4
SELECT n, max(c) OVER (ORDER BY n), lag(c) OVER (ORDER BY n), lag(c, 1, 'z') OVER (ORDER BY n), first_value(c) OVER (ORDER BY n), rank() OVER (ORDER BY c), count(*) OVER (PARTITION BY c5), row_number() OVER (PARTITION BY c5 ORDER BY c, n), nth_value(c, 2) OVER (ORDER BY n) FROM leaf_4 ORDER BY n
SELECT c FROM leaf_4 UNION SELECT c FROM leaf_4 WHERE n > 7 ORDER BY 1
SELECT * FROM (SELECT c FROM leaf_4 UNION ALL SELECT c5 FROM leaf_4) q ORDER BY c, octet_length(c)
SELECT c FROM leaf_4 UNION ALL SELECT 'q ' ORDER BY 1
SELECT * FROM (SELECT c FROM leaf_4 UNION ALL SELECT t FROM leaf_4) q ORDER BY c, octet_length(c)
SELECT t FROM leaf_4 UNION ALL SELECT c FROM leaf_4 ORDER BY 1
SELECT t FROM leaf_4 UNION SELECT c FROM leaf_4 ORDER BY 1
SELECT c FROM leaf_4 INTERSECT SELECT c FROM leaf_4 WHERE n > 7 ORDER BY 1
SELECT c FROM leaf_4 EXCEPT SELECT c FROM leaf_4 WHERE n > 7 ORDER BY 1
SELECT q.c || '|', length(q.c) FROM (SELECT c, count(*) AS k FROM leaf_4 GROUP BY c) q WHERE q.c = 'ab   '
WITH q AS (SELECT c, n FROM leaf_4) SELECT q.c, w.n FROM q JOIN q w ON w.c = q.c WHERE q.c LIKE 'x%' ORDER BY 2
SELECT (SELECT c FROM leaf_4 WHERE n = 12) = 'ab ', (SELECT c FROM leaf_4 WHERE n = 12), EXISTS (SELECT FROM leaf_4 WHERE c = 'x    ')
SELECT pg_typeof(c), pg_typeof(max(c)), pg_typeof(c || 'x') FROM leaf_4 GROUP BY c, n ORDER BY n
SELECT row_to_json(q) FROM (SELECT c, n FROM leaf_4 ORDER BY n LIMIT 2) q
-- templates of numbers
SELECT to_char(n, '9,999th'), to_char(n / 7.0, 'FM999,990.00'), to_char(100.0 * n / sum(n) OVER (), '990.0%'), to_char(-n, 'S999MI'), to_char(n, 'FMRN') FROM leaf_1 ORDER BY n, k
SELECT to_char(n, '0999PR'), to_char(-n, '9G999D99PR'), to_char(n::float8 / 3, '9.999EEEE'), to_char(n::real, 'L999'), to_char(n, '99V99'), to_char(n, '9.9.9') FROM leaf_1 ORDER BY n, k
SELECT to_char(-n, '9G999D99PR'), to_char(n::float8 / 3, '9.999EEEE'), to_char(n::real, '"n = "L999'), to_char(n * 1000, '99V99'), to_char('NaN'::float8, '999.9x') FROM leaf_1 ORDER BY n, k
SELECT to_number(to_char(n, 'S9,999.9'), 'S9,999.9'), to_number('$1,234.50-', 'L9G999D99S'), to_number('x', '9') FROM leaf_1 ORDER BY n, k
SELECT to_number(to_char(n, 'S9,999.9'), 'S9,999.9'), to_number('<1,234.50>', '9G999D99PR'), to_number('12345', '999V99') FROM leaf_1 ORDER BY n, k
-- made of parts
SELECT make_interval(0, 0, 0, n::int), make_interval(n::int, 1, 2, 3, 4, 5, n / 8.0), make_timestamp(2024, 2, 29, n::int % 24, 0, 1.5), make_timestamptz(2024, 3, 31, 2, 30, 0), make_timestamptz(2024, 3, 31, 2, 30, 0, 'Europe/Paris'), make_interval() FROM leaf_1 ORDER BY n, k
-- buckets between thresholds
SELECT width_bucket(n, ARRAY[5, 10, 20.5]), width_bucket(n::float8, '{1,12}'::float8[]), width_bucket(k, ARRAY['b', 'c']), width_bucket(n, ARRAY[20, 5, 10]), width_bucket(n, ARRAY[]::int[]), width_bucket(NULL::int, ARRAY[1, NULL]) FROM leaf_1 ORDER BY n, k
SELECT width_bucket(n, ARRAY[5, NULL]) FROM leaf_1 ORDER BY n, k
-- JSON of values, and intervals of one sign
SELECT json_build_array(n, k, NULL, 1.50, n > 10, 'a"b'), json_build_array(), to_json(n), to_json(k), to_json(n / 7.0), to_json(NULL::int), to_json(ARRAY[1] IS NULL) FROM leaf_1 ORDER BY n, k
SELECT justify_interval(interval '40 days -30 hours' * n), justify_interval(interval '-1 mon 3 days' * n) FROM leaf_1 ORDER BY n, k
-- Texts as oids, sums of floats that overflow, and fractions that are none
SELECT (t || '')::oid FROM (VALUES ('0'), ('-3'), (' 17 '), ('+5'), ('4294967295'), ('-2147483648'), (NULL)) AS v(t)
SELECT '-3'::oid, '4294967295'::oid, ' 7 '::oid
SELECT (t || '')::oid FROM (VALUES ('-3.5')) AS v(t)
SELECT (t || '')::oid FROM (VALUES ('4294967296')) AS v(t)
SELECT (t || '')::oid FROM (VALUES ('')) AS v(t)
SELECT sum(x) FROM (VALUES (1e308::float8), (1e308)) AS v(x)
SELECT avg(x) FROM (VALUES (1e308::float8), (1e308)) AS v(x)
SELECT sum(x), avg(x), sum(x) FILTER (WHERE x < 1) FROM (VALUES ('Infinity'::float8), (1e308), (NULL)) AS v(x)
SELECT sum(x) OVER (ORDER BY x ROWS 1 PRECEDING) FROM (VALUES (1.5::float8), (1e307), (1e308)) AS v(x) ORDER BY 1
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(NULL) WITHIN GROUP (ORDER BY n), percentile_disc(1) WITHIN GROUP (ORDER BY n) FROM leaf_1
SELECT percentile_disc(2) WITHIN GROUP (ORDER BY n) FROM leaf_1
-- What fails by its constants alone, and what need not
SELECT to_char(n, '9.9.9') FROM leaf_1
SELECT s.k FROM (SELECT k, to_char(n, '9.9.9') AS t FROM leaf_1) AS s
SELECT s.k, t FROM (SELECT k, to_char(n, '9.9.9') AS t FROM leaf_1) AS s
SELECT k, to_char(n, '9.9.9') FROM leaf_1 WHERE n > 1000
SELECT k, n / 0 FROM leaf_1 LIMIT 0
SELECT k, CASE WHEN n > 1000 THEN n / 0 END, coalesce(n, n / 0) FROM leaf_1 ORDER BY 1, 3
SELECT CASE WHEN n / 0 > 1 THEN 1 END FROM leaf_1
SELECT sum(n / 0) FROM leaf_1 WHERE n > 1000
SELECT sum(width_bucket(n, 1, 1, 5)) FROM leaf_1
SELECT a.k, to_char(b.n, '9.9.9') FROM leaf_1 AS a LEFT JOIN leaf_1 AS b ON b.n > a.n + 1000 ORDER BY 1
SELECT a.k FROM leaf_1 AS a JOIN leaf_1 AS b ON to_char(a.n, '9.9.9') = b.k
WITH w AS (SELECT k, n / 0 AS x FROM leaf_1) SELECT k FROM leaf_1 ORDER BY n
WITH w AS (SELECT k, n / 0 AS x FROM leaf_1) SELECT x FROM w
SELECT rank() OVER (ORDER BY n / 0) FROM leaf_1
SELECT n FROM leaf_1 ORDER BY date_trunc('foo', date '2024-01-01' + n::int)
SELECT k, ntile(0) OVER (ORDER BY n) FROM leaf_1
SELECT sum(n) OVER w FROM leaf_1 WINDOW w AS (ORDER BY n ROWS -1 PRECEDING)
SELECT n FROM leaf_1 UNION ALL SELECT n / 0 FROM leaf_1
SELECT n FROM leaf_1 UNION ALL SELECT n / 0 FROM leaf_1 WHERE n > 1000 ORDER BY 1
SELECT k, i FROM leaf_1, generate_series(1, n, 0) AS i
SELECT (SELECT to_char(n, '9.9.9')) FROM leaf_1
SELECT count(*) FROM leaf_1 HAVING count(*) / 0 > 1
SELECT k, count(*) FROM leaf_1 GROUP BY k HAVING count(*) > 1000 AND max(n) / 0 > 1
SELECT DISTINCT n % 0 FROM leaf_1
SELECT regexp_replace(k, '(', 'x'), n FROM leaf_1
SELECT k LIKE 'a' ESCAPE 'xx', n FROM leaf_1
SELECT k SIMILAR TO 'a' ESCAPE 'xx', n FROM leaf_1
-- Times of the day.
SELECT d, d + time '10:30', (d + time '10:30')::time, (d + time '10:30')::time - time '09:00' FROM leaf_2 ORDER BY d
SELECT (timestamp '2024-01-01' + n * interval '37 minutes')::time AS t, count(*) FROM leaf_1 GROUP BY 1 ORDER BY t
SELECT max(t), min(t), count(DISTINCT t), array_agg(t ORDER BY t) FROM (SELECT (timestamp '2024-01-01' + n * interval '37 minutes')::time AS t FROM leaf_1) x
SELECT n, t, lag(t) OVER (ORDER BY t, n), t BETWEEN '01:00' AND '03:00', t::text || '!' FROM (SELECT n, (timestamp '2024-01-01' + n * interval '37 minutes')::time AS t FROM leaf_1) x ORDER BY t, n
SELECT time '24:00', time '23:30' + interval '1 hour', '9:05 pm'::time(0), make_time(1, 2, 3.5), extract(epoch FROM time '00:01'), to_char(time '15:04', 'HH12:MI AM'), time '10:00' IN ('10:00', '11:00'), time '10:00' < interval '11 hours'
SELECT '25:00'::time
SELECT date_trunc('hour', time '10:20'), '10:20'::time::interval, interval '26 hours'::time, coalesce(NULL::time, '12:00'), greatest(time '10:00', '11:00')
SELECT time '10:00' UNION SELECT '09:00' ORDER BY 1
SELECT time '10:00' = date '2024-01-01'
SELECT '{10:00,NULL,24:00}'::time[], ARRAY[time '10:00', '11:00'], (ARRAY[time '10:00', '11:00'])[2]
SELECT format_type(1083, 2), format_type(1083, -1), pg_typeof(time '10:00')
SELECT h, n, h < '12:00', h::text, coalesce(h, '10:00'), extract(hour FROM h) FROM leaf_5 ORDER BY h NULLS FIRST
SELECT h + interval '90 minutes' AS t, sum(n), max(h), array_agg(h) FROM leaf_5 GROUP BY 1 ORDER BY 1
SELECT CASE WHEN h BETWEEN '09:00' AND '17:00' THEN 'office' ELSE 'other' END, sum(n), min(h) FROM leaf_5 GROUP BY 1 ORDER BY 1
SELECT a.h, b.n FROM leaf_5 a JOIN leaf_5 b ON a.h = b.h ORDER BY 1
SELECT h FROM leaf_5 UNION SELECT '09:30:00.5' UNION SELECT time '10:00' ORDER BY 1
