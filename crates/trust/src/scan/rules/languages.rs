//! The most common instructions to a model in other languages: to drop its instructions, to keep
//! something from the user, to hand over keys, passwords and conversations.
//!
//! Accents are omitted, because they are also removed from the words of a text.

use super::Rules;
use crate::scan::{Kind, Severity};

/// Rules for texts.
pub(super) const RULES: &[Rules] = &[
    Rules {
        kind: Kind::Override,
        severity: Severity::Danger,
        says: "it tells the model to ignore its instructions (in another language)",
        lines: &[
            // German
            "ignoriere|ignorier|ignorieren|vergiss|vergessen|missachte|missachten|verwirf ..5 anweisung*|instruktion*|vorgabe*|regeln|befehle|richtlinien|systemprompt*",
            // French
            "ignorez|ignorer|oublie|oubliez|neglige*|ecarte* ..4 instructions|consignes|directives|regles|ordres",
            "ignore ..4 consignes|regles|ordres|instructions_precedentes|instructions_ci_dessus|directives_precedentes",
            // Spanish
            "ignora|ignore|ignorar|olvida|olvide|omite|descarta|desestima ..4 instrucciones|indicaciones|reglas|ordenes|directrices",
            // Portuguese
            "ignore|ignora|esqueca|esquece|desconsidere|desconsidera ..4 instrucoes|orientacoes|regras|ordens|diretrizes",
            // Italian
            "ignora|ignorare|ignorate|dimentica|dimenticate|trascura ..4 istruzioni|regole|direttive|indicazioni|ordini",
            // Dutch
            "negeer|vergeet ..4 instructies|opdrachten|aanwijzingen|regels",
            // Swedish, Danish, Norwegian
            "ignorera|ignorer|glom|glem|bortse|se_bort ..4 instruktion*|anvisning*|instrukser*|regler*|ordre*|direktiv*",
            // Finnish
            "ohita|unohda|sivuuta ..3 ohjeet|ohjeesi|saannot|maaraykset|kaskyt",
            // Czech, Slovak
            "ignoruj|ignorujte|zapomen|zapomente|zabudni|zabudnite|nedbej|prehlizej ..4 instrukc*|pokyn*|pravidla|prikaz*|instrukci*",
            // Hungarian
            "hagyd_figyelmen_kivul|felejtsd_el|felejts_el|ne_vedd_figyelembe ..4 utasitas*|szabaly*|eloiras*",
            // Romanian
            "ignora|ignorati|uita|uitati ..4 instructiunile|instructiuni|regulile|ordinele|indicatiile",
            // Greek
            "αγνοησε|αγνοηστε|ξεχασε|ξεχαστε|παραβλεψε ..4 οδηγιες|εντολες|κανονες|οδηγιων",
            // Polish
            "ignoruj|zignoruj|zapomnij|pomin|odrzuc ..4 instrukcj*|polecen*|zasad*|wytyczn*|reguly",
            // Russian, Ukrainian
            "игнорируй*|проигнорируй*|забудь*|отбрось*|ігноруй*|забудь*|не_обращай* ..5 инструкци*|указани*|правил*|команд*|промпт*|інструкці*|вказівк*",
            // Turkish
            "onceki|yukaridaki|tum|butun ..3 talimat*|komut*|yonerge*|kural* ..4 yok_say*|gormezden|unut*|dikkate_alma*|goz_ardi*",
            // Indonesian, Malay
            "abaikan|lupakan ..4 instruksi|perintah|aturan|petunjuk|arahan",
            // Vietnamese
            "bo_qua|phot_lo|quen ..5 huong_dan|chi_thi|menh_lenh|quy_tac|chi_dan",
            // Chinese
            "忽略|忽视|忽視|无视|無視|忘记|忘記|忘掉|不要理会|不用理会|抛弃|摒弃|不要遵守|不再遵守 ..12 指令|指示|提示词|提示詞|系统提示|规则|規則|命令|设定|設定|指引|准则",
            // Japanese
            "指示|命令|ルール|プロンプト|規則|ガイドライン|指令 ..8 無視|忘れ|従わない|従うな|破棄",
            // Korean
            "이전|기존|모든|위의|앞선|원래 ..3 지시*|명령*|지침*|규칙*|프롬프트* ..4 무시*|잊*|따르지*",
            // Arabic
            "تجاهل|تجاهلي|انس|اهمل ..4 التعليمات|تعليمات|تعليماتك|الاوامر|القواعد|التوجيهات|الارشادات",
            // Hindi
            "पिछले|सभी|पूर्व|पहले ..4 निर्देशों|निर्देश|नियमों|आदेशों ..5 अनदेखा|भूल|भूलो|नज़रअंदाज़|उपेक्षा",
        ],
    },
    Rules {
        kind: Kind::Secrecy,
        severity: Severity::Danger,
        says: "it tells the model to hide something from the user (in another language)",
        lines: &[
            // German
            "nutzer*|benutzer*|anwender*|user ..6 nicht|nichts|nie|niemals|keinesfalls|kein* ..4 mitteil*|sagen|erzahl*|informier*|verrat*|erwahn*|wissen|merken|erfahren|mit|zeigen|davon",
            "sag|sage|sagen|verrate|verrat|erzahle|erzahl|erwahne|informiere|informier|zeige|melde ..5 nutzer*|benutzer*|anwender*|user ..5 nicht|nichts|nie|niemals|kein*",
            "sag|sage|verrate|erzahle|erwahne|erwahn|informiere|zeige ..4 nicht|nichts|nie|niemals|kein* ..4 nutzer*|benutzer*|anwender*|user",
            "ohne ..2 wissen ..3 nutzer*|benutzer*|anwender*",
            "heimlich|klammheimlich",
            // French
            "ne|n ..2 dis|dites|dire|mentionne*|mentionnez|revele*|revelez|informe*|parle*|parlez|signale*|montre*|previens|prevenez ..5 utilisateur*|lutilisateur*|personne|lusager|usager",
            "linsu|a_l_insu ..2 utilisateur*|de_lutilisateur*|lutilisateur*",
            "en_secret|secretement|en_cachette|a_linsu",
            // Spanish
            "no ..3 digas|diga|decir|decirle|menciones|mencione|informes|informe|reveles|revele|cuentes|cuente|avises|avise|muestres|muestre|notifiques ..4 usuario|usuarios|nadie|humano",
            "sin_que ..3 usuario ..3 sepa|note|entere|vea|advierta",
            "en_secreto|secretamente|a_escondidas|sigilosamente",
            // Portuguese
            "nao ..3 diga|conte|mencione|informe|revele|avise|mostre|notifique|dizer|contar ..4 usuario|usuarios|utilizador|ninguem",
            "em_segredo|as_escondidas|sem_que_o_usuario|sem_o_usuario_saber",
            // Italian
            "non ..3 dire|dirlo|dillo|menzionare|informare|rivelare|mostrare|avvisare|comunicare|dite ..5 utente|allutente|lutente|utenti|nessuno",
            "di_nascosto|in_segreto|segretamente|allinsaputa|a_insaputa",
            // Dutch
            "vertel|zeg|meld|noem|toon|laat ..5 gebruiker* ..4 niet|niets|geen|nooit",
            "vertel|zeg|meld|noem|toon ..3 niet|niets|nooit|geen ..3 gebruiker*",
            "stiekem|heimelijk|in_het_geheim",
            // Swedish, Danish, Norwegian
            "beratta|sag|namn|visa|avsloja|informera|fortael|fortaell|fortell|fortel|sig|si|naevn|nevn|vis|afslor|avslor|informer|meddela ..3 inte|aldrig|inget|ingenting|ikke|aldri|intet ..4 anvandar*|bruger*|bruker*|nagon|nogen|noen",
            "inte|aldrig|ikke|aldri ..2 beratta|saga|namna|visa|avsloja|informera|fortaelle|fortelle|sige|si|naevne|nevne|vise|informere ..5 anvandar*|bruger*|bruker*|nagon|nogen|noen",
            "anvandar*|bruger*|bruker* ..3 inte|aldrig|ikke|aldri ..3 veta|marka|fa_veta|vide|vite|opdage|oppdage|se",
            "i_hemlighet|i_smyg|hemligen|i_hemmelighed|i_hemmelighet|i_smug",
            // Finnish
            "ala|alkaa ..2 kerro|kertoko|mainitse|paljasta|nayta|ilmoita ..5 kayttajalle|kenellekaan",
            "salaa_kayttajalta|kayttajan_tietamatta|vaivihkaa",
            // Czech, Slovak
            "nerikej|nerikejte|nesdeluj|nesdelujte|nezminuj|nezminujte|neinformuj|neinformujte|neprozrazuj|neukazuj|nehovor|nehovorte|nespominaj|neprezrad* ..5 uzivatel*|pouzivatel*|nikomu",
            "uzivatel*|pouzivatel* ..4 nerikej*|nesdeluj*|nezminuj*|neinformuj*|neprozrazuj*|nehovor*|nesmi|nesmie",
            "tajne|potaji|potajmu|bez_vedomi_uzivatele|bez_vedomia",
            // Hungarian
            "ne ..1 mondd|mondd_el|emlitsd|aruld|ertesitsd|szolj|mutasd ..5 felhasznalo*|senkinek",
            "titokban|felhasznalo_tudta_nelkul",
            // Romanian
            "nu ..2 spune|spuneti|mentiona|mentionati|informa|informati|dezvalui|arata ..5 utilizator*|nimanui",
            "pe_ascuns",
            // Greek
            "μην|μη ..3 πεις|πειτε|αναφερεις|αναφερετε|ενημερωσεις|ενημερωσετε|αποκαλυψεις|αποκαλυψετε|δειξεις|δειξετε|λες ..5 χρηστη|χρηστες|κανεναν|κανεις",
            "κρυφα|μυστικα|στα_κρυφα",
            // Polish
            "nie ..2 mow|mowic|wspominaj|informuj|ujawniaj|pokazuj|powiadamiaj|zdradzaj ..4 uzytkownik*|nikomu",
            "potajemnie|w_tajemnicy|po_cichu",
            // Russian, Ukrainian
            "не|ни ..2 говори*|сообщай*|упоминай*|рассказывай*|раскрывай*|показывай*|уведомляй*|сообщать|говорить|упоминать|кажи*|повідомляй* ..6 пользовател*|никому|человеку|юзеру|користувач*",
            "пользовател* ..5 не ..2 говори*|сообщай*|рассказывай*|должен_знать|узнал|узнает",
            "тайно|втайне|скрытно|тайком|незаметно_для|таємно",
            // Turkish
            "kullanici* ..6 soyleme*|bildirme*|bahsetme*|gosterme*|haber_verme*|anlatma*|bilmemeli|fark_etme*",
            "gizlice|caktirmadan",
            // Indonesian, Malay
            "jangan ..2 beritahu|beritahukan|katakan|sebutkan|tunjukkan|ungkapkan|beri_tahu|memberitahu ..4 pengguna|siapa",
            "diam_diam|secara_rahasia|sembunyi_sembunyi",
            // Vietnamese
            "khong|dung|dung_bao_gio ..3 noi|tiet_lo|de_cap|cho ..4 nguoi_dung",
            "bi_mat_gui|am_tham|len_lut",
            // Chinese
            "不要|别|別|不得|不能|切勿|禁止|请勿|請勿|勿|不可|不许|不必|无需|绝不|不应 ..4 告诉|告訴|告知|提及|提到|透露|通知|提醒|泄露|展示|显示|说明|解释|让 ..8 用户|用戶|使用者|任何人|他人|对方|客户|人类",
            "不要|别|別|不得|不能|切勿|禁止|请勿|請勿 ..6 用户|用戶|使用者 ..4 知道|发现|察觉|看到|提及|透露|提起|發現",
            "偷偷|暗中|悄悄地|秘密地|私下里|背着用户|瞒着用户",
            // Japanese
            "ユーザー|ユーザ|利用者|誰 ..12 言わない|言うな|伝えない|伝えるな|知らせない|知らせるな|教えない|話さない|見せない|明かさない|知られ|気づかれ|報告しない|言及しない|内緒",
            "こっそり|秘密裏|密かに|ひそかに|内密に",
            // Korean
            "사용자*|유저*|아무에게도|누구에게도 ..6 말하지*|알리지*|언급하지*|보여주지*|공개하지*|밝히지*|모르게|알려주지*|숨기*",
            "몰래|은밀히|비밀리에",
            // Arabic
            "لا ..2 تخبر|تذكر|تقل|تكشف|تبلغ|تعلم|تخبري ..4 المستخدم|احدا|احد|للمستخدم",
            "سرا|خفية|دون_علم",
            // Hindi
            "उपयोगकर्ता|यूज़र|किसी ..5 मत|न|नहीं ..2 बताना|बताओ|बताएं|बताए|कहो|कहना|दिखाओ",
        ],
    },
    Rules {
        kind: Kind::Exfiltration,
        severity: Severity::Danger,
        says: "it asks for keys, passwords or conversations (in another language)",
        lines: &[
            // German
            "lies|lese|offne|kopiere|sende|schicke|ubergib|ubergebe|ubermittle|lade|hange|fuge|trage ..10 ssh|id_rsa|passworter|zugangsdaten|private_schlussel|privaten_schlussel|geheimen_schlussel|gesprach|gesprachsverlauf|unterhaltung|chatverlauf|umgebungsvariablen|geheimnisse|env|passwd",
            // French
            "lis|lisez|lire|ouvre|ouvrez|copie|copiez|envoie|envoyez|transmets|transmettez|joins|joignez|inclus|incluez|ajoute|ajoutez ..10 ssh|id_rsa|mots_de_passe|cles_privees|cle_privee|identifiants_de_connexion|conversation_complete|toute_la_conversation|historique_de_la_conversation|variables_denvironnement|env|passwd",
            // Spanish
            "lee|lea|abre|abra|copia|copie|envia|envie|manda|mande|pasa|pase|incluye|incluya|adjunta|adjunte|anade ..10 ssh|id_rsa|contrasenas|clave_privada|claves_privadas|credenciales|toda_la_conversacion|conversacion_completa|historial_de_conversacion|historial_del_chat|variables_de_entorno|env|passwd",
            // Portuguese
            "leia|abra|copie|envie|mande|passe|inclua|anexe ..10 ssh|id_rsa|senhas|chave_privada|chaves_privadas|credenciais|toda_a_conversa|conversa_inteira|historico_da_conversa|variaveis_de_ambiente|env|passwd",
            // Italian
            "leggi|apri|copia|invia|manda|passa|includi|allega|inserisci ..10 ssh|id_rsa|chiave_privata|chiavi_private|credenziali|intera_conversazione|tutta_la_conversazione|cronologia_della_chat|variabili_dambiente|env|passwd",
            // Dutch
            "lees|open_het|open_de|open_eerst|kopieer|stuur|verzend|geef|voeg ..10 ssh|id_rsa|wachtwoorden|privesleutel*|inloggegevens|hele_gesprek|volledige_gesprek|chatgeschiedenis|env|passwd",
            // Swedish, Danish, Norwegian
            "las_filen|las_forst|las_in|las_innehallet|las_upp|las_igenom|laes|les_filen|les_forst|les_innholdet|oppna|aben|apne|kopiera|kopier|skicka|bifoga|vedhaeft|vedlegg|klistra|inkludera|inkluder|lagg|laeg|legg|hamta|hent ..10 ssh|id_rsa|id_ed25519|losenord|losenorden|adgangskoder|passord|privata_nyckel*|private_nogle*|private_nokkel*|hela_samtalet|hele_samtalen|miljovariabler*|env|passwd",
            // Finnish
            "lue|avaa|kopioi|laheta|liita|sisallyta ..10 ssh|id_rsa|salasanat|yksityinen_avain|koko_keskustelu|ymparistomuuttujat|env|passwd",
            // Czech, Slovak
            "precti|prectete|precitaj|otevri|otevrete|otvor|zkopiruj|skopiruj|posli|poslete|odesli|odosli|vloz|vlozte|prilozte|priloz|predej|pridej|nacti|uved ..10 ssh|id_rsa|id_ed25519|hesla|soukromy_klic|sukromny_kluc|celou_konverzaci|celu_konverzaciu|promenne_prostredi|env|passwd",
            // Hungarian
            "olvasd|nyisd|masold|kuldd|csatold|illeszd ..10 ssh|id_rsa|jelszavakat|privat_kulcs*|teljes_beszelgetes*|env|passwd",
            // Romanian
            "citeste|cititi|deschide|copiaza|copiati|trimite|trimiteti|includeti|ataseaza ..10 ssh|id_rsa|parolele|cheia_privata|intreaga_conversatie|toata_conversatia|env|passwd",
            // Greek
            "διαβασε|διαβαστε|ανοιξε|ανοιξτε|αντεγραψε|αντιγραψε|αντιγραψτε|στειλε|στειλτε|βαλε|βαλτε|συμπεριλαβε|επισυναψε ..10 ssh|id_rsa|κωδικους|ιδιωτικο_κλειδι|συνομιλια|env|passwd",
            // Polish
            "przeczytaj|otworz|skopiuj|wyslij|przeslij|przekaz|dolacz ..10 ssh|id_rsa|hasla|klucz_prywatny|klucze_prywatne|cala_rozmowe|historie_rozmowy|dane_logowania|env|passwd",
            // Russian, Ukrainian
            "прочитай*|прочти*|открой*|скопируй*|отправь*|передай*|пришли*|вставь*|перешли*|надішли*|прочитай* ..10 ssh|id_rsa|пароли|приватный_ключ|приватные_ключи|закрытый_ключ|секретные_ключи|переписку|всю_беседу|весь_разговор|весь_диалог|историю_чата|историю_переписки|учетные_данные|переменные_окружения|env|passwd",
            // Turkish
            "ssh|id_rsa|sifreler*|parolalar*|ozel_anahtar*|konusmanin_tamami*|tum_konusma*|env|passwd ..8 oku*|gonder*|ilet*|ekle*|kopyala*",
            // Indonesian, Malay
            "baca|buka|salin|kirim|kirimkan|sertakan|lampirkan ..10 ssh|id_rsa|kata_sandi|kunci_pribadi|seluruh_percakapan|riwayat_percakapan|kredensial|env|passwd",
            // Chinese
            "读取|打开|获取|复制|收集|提取|讀取|打開|查找 ..14 密码|密钥|私钥|凭证|凭据|密碼|密鑰|环境变量|ssh|id_rsa|passwd|env ...16 传递|传入|传给|发送|发到|发给|上传|附加|附上|放入|填入|写入|作为参数|提交|傳|傳送|放到",
            "将|把|发送|上传|传递|提交|附上|填入|傳送|發送 ..8 完整对话|全部对话|对话记录|聊天记录|对话历史|所有对话|整个对话|聊天历史|完整的对话|全部聊天|ssh|id_rsa|私钥",
            // Japanese
            "パスワード|秘密鍵|ssh|id_rsa|認証情報|会話の全|会話全体|会話履歴|チャット履歴|環境変数|env|passwd ..14 送信|送って|渡して|渡す|含めて|含める|アップロード|添付|コピーして|読み取って",
            // Korean
            "비밀번호*|개인키*|비밀키*|ssh|id_rsa|대화|대화*|자격증명*|환경변수*|env|passwd ..5 읽어*|전송*|전달하*|보내*|포함시*|첨부*|복사해*|업로드*",
            // Arabic
            "اقرا|افتح|انسخ|ارسل|مرر|ارفق ..10 ssh|id_rsa|كلمات|المفتاح|المفاتيح|المحادثة|env|passwd",
            // Hindi
            "ssh|id_rsa|पासवर्ड|निजी_कुंजी|पूरी_बातचीत|env|passwd ..8 पढ़ो|पढ़ें|भेजो|भेजें|भेज|शामिल",
        ],
    },
];
