import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { writeSecretFile } from '../../../src/pki/secret-file.ts'
import { admin } from '../../api/support/controller.ts'
import { runHere } from '../run-here.ts'
import type { Finished } from '../support.ts'
import { EnrollingController } from '../enroll/support.ts'

/** A user at a terminal, with a separate home folder, and a controller with a real listener. */
export class Administrator {
  readonly cluster: EnrollingController
  readonly folder = mkdtempSync(join(tmpdir(), 'flotilla-admin-'))

  private constructor(cluster: EnrollingController) {
    this.cluster = cluster
  }

  /** Starts a new cluster; the user is not logged in. */
  static async open(featureLevel?: number, providerCaPem?: string): Promise<Administrator> {
    return new Administrator(await EnrollingController.open(featureLevel, providerCaPem))
  }

  /** Starts a new cluster, with the user logged in as the default administrator. */
  static async loggedIn(featureLevel?: number, providerCaPem?: string): Promise<Administrator> {
    const made = await Administrator.open(featureLevel, providerCaPem)
    const done = await made.logIn()
    if (done.code !== 0) throw new Error(done.stderr)
    return made
  }

  get origin(): string {
    return this.cluster.origin
  }

  get caPem(): string {
    return this.cluster.controller.authorities.anchorsPem()
  }

  run(...words: string[]): Promise<Finished> {
    return runHere(words, { XDG_CONFIG_HOME: this.folder })
  }

  /** The standard output of a command that must succeed and print nothing on stderr. */
  async out(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...words)
    if (code !== 0 || stderr !== '') throw new Error(`flotilla ${words.join(' ')}: ${stderr}`)
    return stdout
  }

  logIn(...flags: string[]): Promise<Finished> {
    const words = [
      '--user',
      admin.username,
      '--password-file',
      this.secret('password', admin.password),
    ]
    return this.run(
      'login',
      this.origin,
      ...words,
      '--ca',
      this.file('ca.pem', this.caPem),
      ...flags,
    )
  }

  file(name: string, text: string): string {
    const path = join(this.folder, name)
    writeFileSync(path, text)
    return path
  }

  secret(name: string, text: string): string {
    const path = join(this.folder, name)
    writeSecretFile(path, `${text}\n`)
    return path
  }

  async close(): Promise<void> {
    rmSync(this.folder, { recursive: true, force: true })
    await this.cluster.close()
  }
}
