import type { ComponentChildren } from 'preact'

import type { IconName } from '../controls/icon.tsx'
import { Empty } from '../controls/status.tsx'
import { LinkButton } from '../controls/button.tsx'
import { ClusterPage } from '../pages/cluster/cluster-page.tsx'
import { texts } from '../texts.ts'
import { BASE, type Place } from './navigation.ts'
import { registerGoKey } from './shortcuts.ts'

export interface Page {
  readonly title: string
  readonly show: () => ComponentChildren
}

interface NavigationLink {
  /** First name of its path. */
  readonly name: string
  readonly title: string
  readonly icon: IconName
  /** Behind `g`. */
  readonly key: string
}

export const navigation: readonly {
  readonly title: string
  readonly links: readonly NavigationLink[]
}[] = [
  {
    title: '',
    links: [{ name: 'cluster', title: texts.pages.cluster, icon: 'cluster', key: 'c' }],
  },
]

export function pageAt({ names }: Place): Page {
  const [first = 'cluster'] = names
  if (first === 'cluster') return { title: texts.pages.cluster, show: () => <ClusterPage /> }
  return { title: texts.pages.missing, show: () => <MissingPage /> }
}

function MissingPage() {
  return (
    <Empty icon="search" title={texts.failure.missingTitle}>
      <p>{texts.failure.noPage}</p>
      <LinkButton href={`${BASE}/`}>{texts.failure.toStart}</LinkButton>
    </Empty>
  )
}

export function registerGoKeys(): void {
  for (const { links } of navigation) {
    for (const { key, title, name } of links) if (key !== '') registerGoKey(key, title, name)
  }
}
