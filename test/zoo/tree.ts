import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

export const root = resolve(import.meta.dirname, '../..')
const PARTS = ['src', 'proto', 'test', 'package.json', 'tsconfig.json']

/** A copy of the source and its tests, to be changed and run. @returns its folder. */
export function copyTree(within: string, name: string): string {
  const tree = join(within, name)
  mkdirSync(tree)
  for (const part of PARTS) cpSync(join(root, part), join(tree, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** @returns null when it was applied, or why it was not; the tree is unchanged then. */
export async function applyPatch(tree: string, patch: string): Promise<string | null> {
  return await gitApply(tree, [patch])
}

/** @returns why the patch does not fit the source as it stands; null when it does. */
export async function refusalOf(patch: string): Promise<string | null> {
  return await gitApply(root, ['--check', patch])
}

async function gitApply(tree: string, words: readonly string[]): Promise<string | null> {
  // Inside another repository git would take the paths for that one's, and do nothing.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(tree) }
  try {
    await promisify(execFile)('git', ['apply', '-p1', '--unidiff-zero', ...words], {
      cwd: tree,
      env,
    })
    return null
  } catch (error) {
    const { stderr } = error as { readonly stderr?: string }
    return (stderr ?? String(error)).trim().split('\n')[0] ?? ''
  }
}
