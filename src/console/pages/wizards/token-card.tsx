import type { ComponentChildren } from 'preact'

import { downloadText } from '../../app/download.ts'
import { Button } from '../../controls/button.tsx'
import { CopyText } from '../../controls/copy.tsx'
import { Notice } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { QrCode } from '../../controls/qr-code.tsx'

/**
 * Shows an enrollment token as a file, with the commands that use it; for an identity also as a QR
 * code for phones.
 */
export function TokenCard(props: {
  readonly title: string
  readonly fileName: string
  readonly jwt: string
  readonly expiresAt: string
  readonly kind: 'identities' | 'edge-routers'
  readonly children: ComponentChildren
}) {
  const { wizards } = texts
  const { title, fileName, jwt, expiresAt, kind, children } = props
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
        {kind === 'identities' ? <QrCode text={jwt} label={wizards.qr} /> : null}
        <div class="row">
          <Button icon="backup" kind="primary" onClick={() => downloadText(fileName, jwt)}>
            {wizards.download(fileName)}
          </Button>
          {children}
        </div>
        <CopyText label={wizards.token} text={jwt} />
        {wizards.commands[kind](fileName).map(([label = '', command = '']) => (
          <CopyText key={label} label={label} text={command} />
        ))}
      </div>
    </section>
  )
}
