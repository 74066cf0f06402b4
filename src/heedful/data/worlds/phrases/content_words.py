"""The content words of the phrase world: one row is one meaning, English | French | Vietnamese.

Every row is a bijection, and words are chosen so that every sentence is unambiguous: English verbs whose past
equals their present are left out, as are nouns that are also verbs here, and so on.

Kinds of noun: Person, Animal, Food, Reading matter, Thing, pLace. Further letters say what it is used with: Opens,
Surface (on), Under, Inside (in), Destination (to, from), Built, G (breaks and is repaired), K (of somebody:
kin, hired). The lower-case letter is the possessive of the noun in English: his, her,
its or a singular their (m f n t).
"""

NOUNS = """
P m | man/men | un homme | người đàn ông
P f | woman/women | une femme | người phụ nữ
P m | boy | un garçon | cậu bé
P f | girl | une fille | cô bé
PK t | child/children | un enfant | đứa trẻ
PK t | baby | un bébé | em bé
P m | king | un roi | vị vua
P f | queen | une reine | vị nữ hoàng
P m | prince | un prince | chàng hoàng tử
P f | princess | une princesse | nàng công chúa
PK m | father | un père | người cha
PK f | mother | une mère | người mẹ
PK m | brother | un frère | người anh trai
PK f | sister | une sœur | người chị gái
PK m | uncle | un oncle | người chú
PK f | aunt | une tante | người dì
PK m | grandfather | un grand-père/grands-pères | người ông
PK f | grandmother | une grand-mère/grands-mères | người bà
PK t | doctor | un médecin | bác sĩ
PK t | nurse | une infirmière | y tá
PK t | teacher | un professeur | giáo viên
PK t | student | un étudiant | sinh viên
P t | farmer | un fermier | người nông dân
PK t | soldier | un soldat | người lính
P t | singer | un chanteur | ca sĩ
P t | writer | un écrivain | nhà văn
PK t | neighbor | un voisin | người hàng xóm
PK t | friend | un ami | người bạn
PK t | baker | un boulanger | thợ làm bánh
P t | engineer | un ingénieur | kỹ sư
PK t | lawyer | un avocat | luật sư
P t | artist | un artiste | nghệ sĩ
P t | thief/thieves | un voleur | tên trộm
P t | tourist | un touriste | du khách
A n | cat | un chat | con mèo
A n | dog | un chien | con chó
A n | bird | un oiseau | con chim
A n | horse | un cheval/chevaux | con ngựa
A n | cow | une vache | con bò
A n | pig | un cochon | con lợn
A n | duck | un canard | con vịt
A n | wolf/wolves | un loup | con sói
A n | bear | un ours/ours | con gấu
A n | rabbit | un lapin | con thỏ
A n | tiger | un tigre | con hổ
A n | lion | un lion | con sư tử
A n | elephant | un éléphant | con voi
A n | monkey | un singe | con khỉ
A n | mouse/mice | une souris/souris | con chuột
A n | goat | une chèvre | con dê
A n | frog | une grenouille | con ếch
A n | turtle | une tortue | con rùa
A n | fox | un renard | con cáo
A n | bee | une abeille | con ong
A n | butterfly | un papillon | con bướm
A n | snake | un serpent | con rắn
F n | apple | une pomme | quả táo
F n | orange | une orange | quả cam
F n | banana | une banane | quả chuối
F n | lemon | un citron | quả chanh
F n | pear | une poire | quả lê
F n | strawberry | une fraise | quả dâu tây
F n | watermelon | une pastèque | quả dưa hấu
F n | tomato/tomatoes | une tomate | quả cà chua
F n | mango/mangoes | une mangue | quả xoài
F n | pineapple | un ananas/ananas | quả dứa
F n | carrot | une carotte | củ cà rốt
F n | potato/potatoes | une pomme de terre/pommes de terre | củ khoai tây
F n | onion | un oignon | củ hành
F n | egg | un œuf | quả trứng
F n | cake | un gâteau | chiếc bánh kem
F n | sandwich | un sandwich | ổ bánh mì
R n | book | un livre | quyển sách
R n | letter | une lettre | lá thư
R n | newspaper | un journal/journaux | tờ báo
R n | poem | un poème | bài thơ
R n | story | une histoire | câu chuyện
R n | novel | un roman | cuốn tiểu thuyết
R n | article | un article | bài báo
R n | message | un message | tin nhắn
TSUG n | table | une table | cái bàn
TSG n | chair | une chaise | cái ghế
TSUG n | bed | un lit | cái giường
TOG n | door | une porte | cánh cửa
TOG n | window | une fenêtre | cái cửa sổ
TOSG n | box | une boîte | cái hộp
TO n | bag | un sac | cái túi
T n | hat | un chapeau | cái mũ
T n | shirt | une chemise | cái áo sơ mi
T n | coat | un manteau | cái áo khoác
T n | shoe | une chaussure | chiếc giày
TG n | car | une voiture | chiếc xe hơi
TG n | bicycle | un vélo | chiếc xe đạp
TSG n | boat | un bateau | chiếc thuyền
T n | key | une clé | chiếc chìa khóa
T n | knife/knives | un couteau | con dao
TG n | lamp | une lampe | cái đèn
TG n | mirror | un miroir | cái gương
TOUG n | umbrella | un parapluie | cái ô
TG n | clock | une horloge | cái đồng hồ
T n | flower | une fleur | bông hoa
TU n | tree | un arbre | cái cây
TSU n | stone | une pierre | hòn đá
T n | ball | un ballon | quả bóng
TG n | guitar | une guitare | cây đàn ghi ta
T n | painting | un tableau | bức tranh
TG n | ring | une bague | chiếc nhẫn
T n | basket | un panier | cái giỏ
TOG n | bottle | une bouteille | cái chai
TO n | envelope | une enveloppe | chiếc phong bì
T n | sword | une épée | thanh kiếm
T n | candle | une bougie | ngọn nến
LIDB n | house | une maison | ngôi nhà
LID n | garden | un jardin | khu vườn
LIDB n | school | une école | ngôi trường
LIDB n | church | une église | nhà thờ
LD n | market | un marché | khu chợ
LID n | village | un village | ngôi làng
LI n | city | une ville | thành phố
LI n | forest | une forêt | khu rừng
L n | river | une rivière | con sông
LS n | mountain | une montagne | ngọn núi
LI n | kitchen | une cuisine | căn bếp
LI n | room | une chambre | căn phòng
LIDB n | hospital | un hôpital/hôpitaux | bệnh viện
LIDB n | hotel | un hôtel | khách sạn
LID n | park | un parc | công viên
LIDB n | library | une bibliothèque | thư viện
LS n | island | une île | hòn đảo
LIDB n | castle | un château | tòa lâu đài
LSD n | beach | une plage | bãi biển
LIDB n | restaurant | un restaurant | nhà hàng
LID n | office | un bureau | văn phòng
LSUB n | bridge | un pont | cây cầu
LIDB n | museum | un musée | bảo tàng
LIDB n | theater | un théâtre | nhà hát
LIDB n | shop | un magasin | cửa hàng
"""

# Kinds it may describe; "-" where "very" would be odd; "<": before the French noun (masculine/feminine
# and, third, masculine before a vowel). "!": invariable. Vietnamese may choose its word by kind.
ADJECTIVES = """
< PAFRTL | small | petit | nhỏ
< ATL | big | grand | lớn
< PATRL | old | vieux/vieille/vieil | PA:già TRL:cũ
< P | young | jeune | trẻ
<- TRL | new | nouveau/nouvelle/nouvel | mới
< PATL | beautiful | beau/belle/bel | đẹp
< ATL | pretty | joli | xinh xắn
< PA | fat | gros/grosse | béo
< PRF | good | bon/bonne | P:tốt R:hay F:ngon
< PR | bad | mauvais | tồi
< R | long | long/longue | dài
- AT | black | noir | đen
- AT | white | blanc/blanche | trắng
- TF | red | rouge | đỏ
- TF | green | vert | xanh lá
- TF | yellow | jaune | vàng
- T | blue | bleu | xanh dương
- AT | brown | brun | nâu
- AT | gray | gris | xám
- T | round | rond | tròn
P | happy | heureux/heureuse | hạnh phúc
PR | sad | triste | buồn
PA | tired | fatigué | mệt mỏi
P | rich | riche | giàu có
P | poor | pauvre | nghèo
PA | brave | courageux/courageuse | dũng cảm
PRL | famous | célèbre | nổi tiếng
P | kind | gentil/gentille | tốt bụng
PA | angry | !en colère | tức giận
PA | intelligent | intelligent | thông minh
PA | strong | fort | mạnh mẽ
PA | weak | faible | yếu ớt
PA | sick | malade | ốm
PA | hungry | affamé | đói
P | honest | honnête | trung thực
PA | lazy | paresseux/paresseuse | lười biếng
PA | shy | timide | nhút nhát
PA | thin | maigre | gầy
P | polite | poli | lịch sự
PATRL | strange | étrange | kỳ lạ
AL | dangerous | dangereux/dangereuse | nguy hiểm
A | wild | sauvage | hoang dã
T | heavy | lourd | nặng
TRF | expensive | cher/chère | đắt
TRF | cheap | !bon marché | rẻ
T | precious | précieux/précieuse | quý giá
TAL | dirty | sale | bẩn
L | quiet | tranquille | yên tĩnh
L | dark | sombre | tối tăm
TL | modern | moderne | hiện đại
TR | useful | utile | hữu ích
F | fresh | frais/fraîche | tươi
F | sweet | sucré | ngọt
F | bitter | amer/amère | đắng
RL | interesting | intéressant | thú vị
R | boring | ennuyeux/ennuyeuse | nhàm chán
PR | funny | drôle | hài hước
PRL | mysterious | mystérieux/mystérieuse | bí ẩn
"""

# Subjects > objects. French irregulars: je tu il nous ils, the stem of the future, the participle.
# "+": the past is made with être. "@": the object takes this preposition (see GOVERNED).
VERBS = """
PA > PAFRTL | see/saw | voir: vois vois voit voyons voient verr vu | nhìn thấy
PA > PA | love | aimer | yêu
P > PFRTL | like | apprécier | thích
PA > PAFRTL | hate | détester | ghét
PA > F | eat/ate | manger | ăn
P > AFRT | buy/bought | acheter: achète achètes achète achetons achètent achèter acheté | mua
P > AFRT | sell/sold | vendre: vends vends vend vendons vendent vendr vendu | bán
P > R | write/wrote | écrire: écris écris écrit écrivons écrivent écrir écrit | viết
P > R | translate | traduire: traduis traduis traduit traduisons traduisent traduir traduit | dịch
PA > PAFRTL | find/found | trouver | tìm thấy
P > ART | lose/lost | perdre: perds perds perd perdons perdent perdr perdu | đánh mất
P > O | open | ouvrir: ouvre ouvres ouvre ouvrons ouvrent ouvrir ouvert | mở
P > O | close | fermer | đóng
PA > FRT | carry | porter | mang
P > PAFRTL | draw/drew | dessiner | vẽ
PA > PA | help | aider | giúp
P > PA | call | appeler: appelle appelles appelle appelons appellent appeller appelé | gọi
P > L | visit | visiter | thăm
P > F | wash | laver | rửa
PA > FRT | hide/hid | cacher | giấu
PA > FRT | steal/stole | voler | đánh cắp
P > G | break/broke | casser | làm vỡ
P > GB | paint | peindre: peins peins peint peignons peignent peindr peint | sơn
P > G | repair | réparer | sửa chữa
P > B | build/built | bâtir: bâtis bâtis bâtit bâtissons bâtissent bâtir bâti | xây
PA > PAL | protect | protéger: protège protèges protège protégeons protègent protéger protégé | bảo vệ
P > AFRT | choose/chose | choisir: choisis choisis choisit choisissons choisissent choisir choisi | chọn
P > PAFRTL | forget/forgot | oublier | quên
P > PL | know/knew | connaître: connais connais connaît connaissons connaissent connaîtr connu | biết
P > PARTL | admire | admirer | ngưỡng mộ
P > P | meet/met | rencontrer | gặp
PA > PA | chase | chasser | đuổi theo
PA > PA | catch/caught | attraper | bắt
A > PA | bite/bit | mordre: mords mords mord mordons mordent mordr mordu | cắn
P > F | prepare | préparer | chuẩn bị
PA > F | taste | goûter | nếm
P > P | thank | remercier | cảm ơn
P > P | invite | inviter | mời
PA > PAT | push | pousser | đẩy
PA > PA | listen to | écouter | lắng nghe
PA > PAFRTL | look at | regarder | nhìn
PA > PAFRTL | look for | chercher | tìm kiếm
PA > PA | wait for | attendre: attends attends attend attendons attendent attendr attendu | chờ đợi
P > P @talk | talk | parler | nói chuyện
P > PAFRTL @think | think/thought | penser | nghĩ
P > P @answer | answer | répondre: réponds réponds répond répondons répondent répondr répondu | trả lời
PA > P @answer | obey | obéir: obéis obéis obéit obéissons obéissent obéir obéi | vâng lời
PA > PAFRTL @dream | dream | rêver | mơ
PA > PAFRT @need | need | avoir: ai as a avons ont aur eu besoin | cần
PA > PA @need | fear | avoir: ai as a avons ont aur eu peur | sợ
PA > | sleep/slept | dormir: dors dors dort dormons dorment dormir dormi | ngủ
PA >m | run/ran | courir: cours cours court courons courent courr couru | chạy
PA >m | walk | marcher | đi bộ
PA >m | swim/swam | nager | bơi
P > | sing/sang | chanter | hát
P > | dance | danser | nhảy múa
PA > | cry | pleurer | khóc
P > | laugh | rire: ris ris rit rions rient rir ri | cười
P > | work | travailler | làm việc
PA > | play | jouer | chơi
PA > | fall/fell | + tomber | ngã
PA > | jump | sauter | nhảy
PA > | stay | + rester | nán lại
PA >x | leave/left | + partir: pars pars part partons partent partir parti | rời đi
PA >fx | return | + revenir: reviens reviens revient revenons reviennent reviendr revenu | trở về
PA >t | go/went | + aller: vais vas va allons vont ir allé | đi
P > | travel | voyager | đi du lịch
PA > | hesitate | hésiter | do dự
PA > | breathe | respirer | thở
P > | shout | crier | la hét
PA >x | flee/fled | fuir: fuis fuis fuit fuyons fuient fuir fui | bỏ chạy
PA > | tremble | trembler | run rẩy
P > | pray | prier | cầu nguyện
P > | lie | mentir: mens mens ment mentons mentent mentir menti | nói dối
"""
