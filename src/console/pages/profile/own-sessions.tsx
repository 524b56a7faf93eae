import { useSignal } from '@preact/signals'

import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import { hasPermission, loadCaller } from '../../app/management-document.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { MANAGEMENT_API_PATH } from '../../../client/cluster-client.ts'
import { Button } from '../../controls/button.tsx'
import { texts } from '../../texts.ts'
import { endRows } from '../live/end-rows.ts'
import { closeLiveRow, type LiveDataRow, readOwnSessionId } from '../live/live-data.ts'
import { withLogInMethods } from '../live/live-relations.ts'
import { LiveTable } from '../live/live-table.tsx'
import { readApiSessions, SESSIONS_MAX } from '../records/record-sessions.tsx'

const SESSIONS = `${MANAGEMENT_API_PATH}/api-sessions`
/** Maximum pages of sessions that are ended when the user ends all others. */
const PAGES_MAX = 100
const NO_NAMES = new Map<string, string>()

const endSession = (id: string): Promise<void> => closeLiveRow(SESSIONS, id)

interface OwnSessions {
  readonly rows: readonly LiveDataRow[]
  readonly current: string
}

/** The user's API sessions; null without the permission to read sessions. */
async function load(identityId: string, signal: AbortSignal): Promise<OwnSessions | null> {
  await loadCaller()
  if (!hasPermission('ops.read')) return null
  const [rows, current] = await Promise.all([
    readApiSessions(identityId, signal).then((found) => withLogInMethods(found, signal)),
    readOwnSessionId(signal),
  ])
  return { rows, current }
}

/**
 * Ends all sessions of the identity except the current one, page by page.
 * @throws if some remain after {@link PAGES_MAX} pages, or if one could not be ended.
 */
async function endOthers(identityId: string, current: string): Promise<void> {
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const others = (await readApiSessions(identityId)).filter(({ id }) => id !== current)
    if (others.length === 0) return
    await endRows(others, endSession)
  }
  throw new Error(texts.profile.othersRemain)
}

/** Shows the user's own sessions, and ends all others on request. */
export function OwnSessionsPanel({ identityId }: { readonly identityId: string }) {
  const { profile, live } = texts
  const loaded = useLoadedData(`own-sessions/${identityId}`, (signal) => load(identityId, signal))
  const isEnding = useSignal(false)
  const { value: own } = loaded.data
  if (own === null) return null
  const others = own.rows.filter(({ id }) => id !== own.current)
  const refused = isReadOnly.value
    ? texts.banner.refused
    : others.length === 0
      ? profile.noOthers
      : null
  return (
    <section class="panel" aria-labelledby="own-sessions">
      <div class="panel-head">
        <h2 id="own-sessions">
          {live.names['api-sessions']}{' '}
          <span class="count">
            {own.rows.length}
            {own.rows.length < SESSIONS_MAX ? '' : '+'}
          </span>
        </h2>
        {hasPermission('ops.delete') ? (
          <Button refused={refused} onClick={() => (isEnding.value = true)}>
            {profile.endOthers}
          </Button>
        ) : null}
      </div>
      <LiveTable
        name="api-sessions"
        rows={own.rows}
        columns={['lastActivityAt', 'method', 'ipAddress', 'createdAt']}
        names={NO_NAMES}
        ownSession={own.current}
        end={hasPermission('ops.delete') ? endSession : null}
        keepsOwnSession
        asksFirst
        onEnded={loaded.reload}
      />
      {isEnding.value ? (
        <ConfirmDialog
          title={profile.endOthers}
          verb={live.end}
          isDangerous
          run={() => endOthers(identityId, own.current)}
          done={profile.endedOthers}
          onClose={() => (isEnding.value = false)}
          onDone={loaded.reload}
        >
          <p class="soft">{profile.endOthersWhat(others.length)}</p>
        </ConfirmDialog>
      ) : null}
    </section>
  )
}
