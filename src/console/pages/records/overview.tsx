import type { ComponentChildren } from 'preact'

import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Badge } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { RecordCell, FieldCell } from './record-cell.tsx'
import { fieldLabel } from './form-model.ts'
import { isObject } from './json-values.ts'
import type { Kind } from './kinds.ts'
import type { RecordRow } from './record-data.ts'
import { attributeWithExpiryText, expiredAttributes } from './role-expiry-input.tsx'

/**
 * Fields in the overview, in display order, for kinds for which the list's columns are not enough.
 */
const facts: Readonly<Record<string, readonly string[]>> = {
  identities: [
    'lastSeenAt',
    'typeId',
    'roleAttributes',
    'isAdmin',
    'permissions',
    'authPolicy',
    'externalId',
    'isMfaEnabled',
    'sdkInfo',
    'envInfo',
    'disabledAt',
    'disabledUntil',
  ],
  services: ['roleAttributes', 'encryptionRequired', 'terminatorStrategy', 'maxIdleTimeMillis'],
  'edge-routers': [
    'roleAttributes',
    'versionInfo',
    'hostname',
    'supportedProtocols',
    'cost',
    'noTraversal',
    'isTunnelerEnabled',
    'certificateNames',
    'fingerprint',
  ],
}

/** The most important values of a record, in words. */
export function Overview({ kind, record }: { readonly kind: Kind; readonly record: RecordRow }) {
  const names = (facts[kind.path] ?? kind.columns).filter((name) => name in record)
  const tags = isObject(record['tags']) ? Object.entries(record['tags']) : []
  return (
    <section class="panel" aria-labelledby="facts">
      <div class="panel-head">
        <h2 id="facts">{texts.record.facts}</h2>
      </div>
      <dl class="panel-body facts wide">
        {names.map((name) => (
          <Fact key={name} label={labelOf(kind, name)}>
            <FactValue record={record} name={name} />
          </Fact>
        ))}
        {tags.map(([name, value]) => (
          <Fact key={`tag ${name}`} label={texts.record.tag(visibleText(name))}>
            {visibleText(typeof value === 'string' ? value : JSON.stringify(value))}
          </Fact>
        ))}
        <Fact label={texts.record.createdAt}>
          <Time at={String(record['createdAt'] ?? '')} isExact />
        </Fact>
        <Fact label={texts.record.updatedAt}>
          <Time at={String(record['updatedAt'] ?? '')} isExact />
        </Fact>
      </dl>
      {kind.path === 'configs' ? (
        <pre class="panel-body json" tabIndex={0} aria-label={texts.record.data}>
          {JSON.stringify(record['data'], null, 2)}
        </pre>
      ) : null}
    </section>
  )
}

function labelOf(kind: Kind, name: string): string {
  const { factNames } = texts.record
  const known = factNames[name] ?? texts.list.columns[name]
  return known ?? kind.fields[name]?.label ?? fieldLabel(name.replace(/Id$/, ''))
}

function Fact(props: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{props.label}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}

function FactValue({ record, name }: { readonly record: RecordRow; readonly name: string }) {
  const value = record[name]
  const ended = name === 'roleAttributes' ? expiredAttributes(record) : []
  if (name === 'roleAttributes' && Array.isArray(value) && value.length + ended.length > 0) {
    const ends = record['roleAttributesExpireAt']
    return (
      <span class="chips">
        {value.map((one) => (
          <a class="chip" key={String(one)} href={consolePath('attributes', String(one))}>
            <span>{visibleText(attributeWithExpiryText(String(one), ends))}</span>
          </a>
        ))}
        {ended.map((one) => (
          <Badge key={`ended ${one}`} tone="warn">
            {visibleText(attributeWithExpiryText(one, ends))}
          </Badge>
        ))}
      </span>
    )
  }
  if (name === 'envInfo') return <>{environmentText(value) || '–'}</>
  if (name === 'supportedProtocols' && isObject(value)) {
    const addresses = Object.values(value).map(String)
    return (
      <>{addresses.length === 0 ? texts.record.noClients : addresses.map(visibleText).join(', ')}</>
    )
  }
  if (Array.isArray(value) && record[`${name}Display`] === undefined) {
    return <RecordCell name={name} value={value} />
  }
  return <FieldCell row={record} name={name} />
}

function environmentText(value: unknown): string {
  if (!isObject(value)) return ''
  const parts = ['os', 'osVersion', 'arch', 'hostname'].map((name) => value[name])
  return parts
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .map(visibleText)
    .join(' · ')
}
