// SPDX-License-Identifier: GPL-3.0-or-later
// One page of the user guide, in the colours and fonts of the window; goes back and forward.
// Pictures wider than the page are shown at its width.
#pragma once

#include <QTextBrowser>

class QTextBlock;

namespace mla::ui
{

class HelpBrowser : public QTextBrowser
{
    Q_OBJECT
public:
    explicit HelpBrowser(QWidget* parent = nullptr);

    void setFolder(const QString& folder) { m_folder = folder; }
    void open(const QString& id); ///< a file of the folder, without .md
    [[nodiscard]] const QString& currentPage() const { return m_page; } ///< "" before the first
    /// Marks every place of each of these words.
    void highlight(const QStringList& words);

signals:
    void pageShown(const QString& id);
    void pageRequested(const QString& id); ///< a link to another page was followed

protected:
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void follow(const QUrl& link);
    void style();
    void styleTables();
    void styleBlocks();
    void styleText(const QTextBlock& block);
    void fitPictures();
    void fitPicture(int position, QTextImageFormat format);

    QString m_folder, m_page;
};

} // namespace mla::ui
