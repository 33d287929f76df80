// SPDX-License-Identifier: GPL-3.0-or-later
// Messages above the pages that stay until they are dismissed: no modal boxes, nothing lost.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include <QString>
#include <QWidget>

#include "core/base/result.h"

class QVBoxLayout;

namespace mla::ui
{

struct Notice {
    enum class Severity { Info, Warning, Error };
    Severity severity = Severity::Info;
    QString text;                 ///< one or two sentences
    QString details;              ///< everything known, to read and copy; may be empty
    QString actionText;           ///< of an offered action; empty = none
    std::function<void()> action; ///< the notice goes away with it
    QString topic{};              ///< what withdraw() takes it back by; may be empty
};
/// `title` says what did not work; the error's parts become text and details.
[[nodiscard]] Notice errorNotice(const QString& title, const Error& error);

/// At most three notices are visible, older first; more wait their turn. Hidden when empty.
class MessageBar : public QWidget
{
    Q_OBJECT
public:
    explicit MessageBar(QWidget* parent = nullptr);

    void post(const Notice& notice); ///< one that is equal to a notice still shown is not repeated
    [[nodiscard]] QStringList texts() const; ///< of visible and waiting notices, in order
    void dismissAll();
    void withdraw(const QString& topic); ///< notices of this topic no longer hold

private:
    void showNext();
    void dismiss(QWidget* item);

    QVBoxLayout* m_layout;
    struct Shown {
        QWidget* item;
        QString text, topic;
    };
    std::vector<Shown> m_shown;
    std::deque<Notice> m_waiting;
};

} // namespace mla::ui
