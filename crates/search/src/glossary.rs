//! English translations of words in other scripts, since most tools are described in English.
//!
//! This is not a dictionary. It has the words with which people ask for tools, in Chinese and
//! Japanese, and the pictures that stand for them.

use std::{collections::HashMap, sync::LazyLock};

const WORDS: &str = "
天气 天氣 天気 气温 気温 🌤 🌦 🌧 ☀ ☁ ❄ 🌡 weather
预报 預報 予報 forecast
文件 檔案 文档 文書 ファイル 📄 📁 file
文件夹 文件夾 目录 目錄 フォルダ ディレクトリ 📂 folder
读取 读 讀取 阅读 読む 読み 読み込 📖 read
写入 写 寫 書く 書き込 ✍ ✏ 📝 write
搜索 搜尋 查找 查询 查詢 检索 検索 探す 🔍 🔎 search
创建 新建 建立 作成 作る ➕ create
删除 刪除 削除 消す 🗑 ❌ delete
更新 修改 编辑 編輯 変更 編集 🔄 update
列出 列表 一覧 リスト 📋 list
发送 發送 送信 送る 📤 send
邮件 郵件 电子邮件 メール 電子メール 📧 ✉ 📩 email
消息 訊息 短信 メッセージ 💬 ✉ message
图片 圖片 图像 图 画像 写真 照片 🖼 📷 📸 image
截图 截圖 截屏 スクリーンショット screenshot
视频 影片 動画 ビデオ 🎬 🎥 📹 video
音乐 音樂 音楽 歌 🎵 🎶 🎧 music
翻译 翻譯 翻訳 🌐 🈯 translate
总结 摘要 總結 要約 まとめ summarize
计算 計算 🧮 🔢 calculate
数据库 資料庫 データベース 🗄 database
网页 網頁 网站 網站 ウェブ サイト 🌍 🔗 website
浏览器 瀏覽器 ブラウザ browser
日历 日曆 日程 カレンダー 予定 📅 🗓 calendar
会议 會議 ミーティング meeting
提醒 リマインダー 通知 ⏰ 🔔 reminder
任务 任務 タスク ✅ ☑ task
问题 問題 課題 issue
代码 程式碼 コード 💻 code
仓库 倉庫 リポジトリ repository
提交 コミット commit
分支 ブランチ branch
合并 合併 マージ merge
部署 デプロイ 🚀 deploy
日志 ログ log
地图 地圖 地図 🗺 📍 map
路线 路線 ルート 🧭 route
航班 机票 飛行機 フライト ✈ 🛫 flight
酒店 旅馆 飯店 ホテル 🏨 hotel
餐厅 餐廳 レストラン 🍽 🍴 restaurant
食谱 菜谱 食譜 レシピ 🍳 recipe
新闻 新聞 ニュース 📰 news
股票 股价 株 株価 📈 📉 stock
货币 汇率 匯率 通貨 為替 💱 💵 currency
支付 付款 支払 決済 💳 payment
购物 購物 买 買う 購入 🛒 🛍 shopping
价格 價格 値段 価格 💰 price
时间 時間 时区 時刻 🕐 ⌚ time
用户 使用者 ユーザー 👤 👥 user
联系人 聯絡人 連絡先 contact
笔记 筆記 ノート メモ note
记忆 記憶 🧠 memory
语音 語音 音声 🎤 🗣 speech
电话 電話 📞 ☎ phone
下载 下載 ダウンロード ⬇ download
上传 上傳 アップロード ⬆ upload
测试 測試 テスト 🧪 test
图表 圖表 グラフ 📊 chart
表格 試算表 スプレッドシート spreadsheet
密码 密碼 パスワード 🔑 🔒 password
健康 医疗 醫療 💊 🏥 health
运动 運動 🏃 💪 fitness
游戏 遊戲 ゲーム 🎮 game
电影 電影 映画 🎞 🍿 movie
书 書籍 本 📚 book
工作 职位 仕事 求人 💼 job
法律 ⚖ law
礼物 禮物 プレゼント 🎁 gift
房子 房产 不動産 🏠 🏡 house
汽车 汽車 車 🚗 car
狗 🐶 🐕 dog
猫 🐱 🐈 cat
";

/// The longest word in the table, in characters.
const LONGEST: usize = 8;

/// English words for the parts of a text in other scripts.
pub(crate) fn english(text: &str) -> Vec<&'static str> {
    static TABLE: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
        let lines = WORDS.lines().filter_map(|line| line.rsplit_once(' '));
        let pairs = lines
            .flat_map(|(words, english)| words.split_whitespace().map(move |word| (word, english)));
        pairs.collect()
    });
    if text.is_ascii() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.take(LONGEST).collect();
        let word = ends.iter().rev().find_map(|end| {
            let english = TABLE.get(&rest[..*end])?;
            Some((*end, *english))
        });
        match word.filter(|_| !first.is_ascii()) {
            Some((end, english)) => {
                if !found.contains(&english) {
                    found.push(english);
                }
                rest = &rest[end..];
            }
            None => rest = &rest[first.len_utf8()..],
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_running_text() {
        assert_eq!(english("明天北京的天气预报"), ["weather", "forecast"]);
        assert_eq!(english("メールを送信して"), ["email", "send"]);
        assert_eq!(english("🌧️?"), ["weather"]);
        assert_eq!(english("读取文件夹"), ["read", "folder"]);
        assert!(english("plain words, café").is_empty());
    }
}
