import { afterAll, expect } from 'vitest'
import type { KeyFetchRules } from '../../../src/auth/tokens/key-fetcher.ts'
import type { ApiLimits } from '../../../src/api/limits.ts'
import type { ApiDeps } from '../../../src/api/api-deps.ts'
import { CallerOf } from './caller.ts'
import { startController, type TestController } from './controller.ts'

export interface ForFile {
  readonly controller: TestController
  /** The administrator, in a session. */
  readonly root: CallerOf
  /** A caller with a separate session. */
  sessionOf(identityId: string): CallerOf
}

/**
 * One controller for all tests of a file, closed after the last one. The file fails if the
 * controller has logged an error.
 */
export async function controllerForFile(
  limits: Partial<ApiLimits> = {},
  keyEndpoints?: KeyFetchRules,
  given?: Partial<ApiDeps>,
  featureLevel?: number,
): Promise<ForFile> {
  const controller = await startController(limits, keyEndpoints, given, featureLevel)
  afterAll(async () => {
    await controller.close()
    expect(controller.errors).toEqual([])
  })
  const sessionOf = (identityId: string): CallerOf => {
    const caller = new CallerOf(controller)
    caller.token = controller.openSession(identityId)
    return caller
  }
  return { controller, root: sessionOf('admin-id'), sessionOf }
}
