import type { ComponentChildren } from 'preact'

import { downloadText } from '../../app/download.ts'
import { Button } from '../../controls/button.tsx'
import { CopyText } from '../../controls/copy.tsx'
import { Notice } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { QrCode } from '../../controls/qr-code.tsx'

/**
 * Shows an enrollment token: as a QR code for phones, as a file, and with the command that uses it.
 */
export function TokenCard(props: {
  readonly title: string
  readonly fileName: string
  readonly jwt: string
  readonly expiresAt: string
  readonly command: (fileName: string) => string
  readonly children: ComponentChildren
}) {
  const { wizards } = texts
  const { title, fileName, jwt, expiresAt, command, children } = props
  return (
    <section class="panel record-form" aria-labelledby="token">
      <div class="panel-head">
        <h2 id="token">{title}</h2>
        <span class="faint small">
          {wizards.expires} <Time at={expiresAt} />
        </span>
      </div>
      <div class="panel-body form">
        <Notice tone="warn">{wizards.secret}</Notice>
        <QrCode text={jwt} label={wizards.qr} />
        <div class="row">
          <Button icon="backup" kind="primary" onClick={() => downloadText(fileName, jwt)}>
            {wizards.download(fileName)}
          </Button>
          {children}
        </div>
        <CopyText label={wizards.token} text={jwt} />
        <CopyText label={wizards.command} text={command(fileName)} />
      </div>
    </section>
  )
}
