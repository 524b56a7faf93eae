import type { ComponentChildren } from 'preact'

import { Icon } from './icon.tsx'
import type { BadgeTone } from './badge-tone.ts'
import type { IconName } from './icon-paths.ts'

const icons: Readonly<Record<BadgeTone, IconName>> = {
  good: 'check',
  warn: 'alert',
  bad: 'close',
  accent: 'star',
  plain: 'dot',
}

/** A status in words; icon and color only repeat these words. */
export function Badge(props: {
  readonly tone?: BadgeTone
  readonly icon?: IconName
  readonly children: ComponentChildren
}) {
  const { tone = 'plain', icon = icons[tone], children } = props
  return (
    <span class={`badge ${tone}`}>
      <Icon name={icon} size={12} />
      {children}
    </span>
  )
}

export function Notice(props: {
  readonly tone?: 'plain' | 'good' | 'warn' | 'bad'
  readonly children: ComponentChildren
}) {
  const { tone = 'plain', children } = props
  const icon = tone === 'plain' ? 'info' : tone === 'good' ? 'check' : 'alert'
  return (
    <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  )
}

/** Content of a page without rows: the reason, and what the user can do. */
export function EmptyState(props: {
  readonly icon: IconName
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <Icon name={props.icon} size={28} />
      <h2>{props.title}</h2>
      {props.children}
    </div>
  )
}

export function Skeleton({ width = '100%' }: { readonly width?: string }) {
  return <span class="skeleton" style={{ width }} />
}
